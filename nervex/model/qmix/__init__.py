"""Networks of cooperating agents."""

from nervex.model.qmix.collaq import CollaQ
from nervex.model.qmix.qmix import Mixer, QMix

__all__ = ['CollaQ', 'Mixer', 'QMix']
