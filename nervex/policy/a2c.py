"""A2C is where PPO comes from, see ``nervex.policy.ppo``."""

from nervex.policy.ppo import A2CPolicy  # noqa: F401
