"""Configs of CartPole with sections for the coordinator, the learner and each actor."""

from app_zoo.classic_control.cartpole.entry.parallel.cartpole_dqn_config import cartpole_dqn_config

__all__ = ['cartpole_dqn_config']
