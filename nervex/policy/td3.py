"""TD3 is a setting of DDPG, see ``nervex.policy.ddpg``."""

from nervex.policy.ddpg import TD3Policy

__all__ = ['TD3Policy']
