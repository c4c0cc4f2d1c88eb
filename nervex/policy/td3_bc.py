"""TD3+BC is TD3 with another loss of the actor, see ``nervex.policy.ddpg``."""

from nervex.policy.ddpg import TD3BCPolicy  # noqa: F401
