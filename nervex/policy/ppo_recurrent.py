"""PPO with a memory, see ``nervex.policy.ppo``."""

from nervex.policy.ppo import RecurrentPPOPolicy

__all__ = ['RecurrentPPOPolicy']
