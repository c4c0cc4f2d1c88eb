"""Networks of an actor and a critic for continuous actions."""

from nervex.model.qac.qac import QAC

__all__ = ['QAC']
