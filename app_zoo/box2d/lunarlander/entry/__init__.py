"""Configs of LunarLander."""

from app_zoo.box2d.lunarlander.entry.lunarlander_dqn_default_config import lunarlander_dqn_default_config
from app_zoo.box2d.lunarlander.entry.lunarlander_ppo_default_config import lunarlander_ppo_default_config

__all__ = ['lunarlander_dqn_default_config', 'lunarlander_ppo_default_config']
