"""Networks of soft actor-critic."""

from nervex.model.sac.sac import DiscreteSACModel, SACModel

__all__ = ['DiscreteSACModel', 'SACModel']
