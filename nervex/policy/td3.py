"""TD3 is a setting of DDPG, see ``nervex.policy.ddpg``."""

from nervex.policy.ddpg import TD3Policy  # noqa: F401
