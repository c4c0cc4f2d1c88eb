"""PPO with a memory, see ``nervex.policy.ppo``."""

from nervex.policy.ppo import RecurrentPPOPolicy  # noqa: F401
