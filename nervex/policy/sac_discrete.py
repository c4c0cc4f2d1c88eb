"""SAC for discrete actions, see ``nervex.policy.sac``."""

from nervex.policy.sac import DiscreteSACPolicy  # noqa: F401
