"""Configs of Acrobot."""

from app_zoo.classic_control.acrobot.entry.acrobot_dqn_default_config import acrobot_dqn_default_config
from app_zoo.classic_control.acrobot.entry.acrobot_ppo_default_config import acrobot_ppo_default_config
from app_zoo.classic_control.acrobot.entry.acrobot_qrdqn_default_config import acrobot_qrdqn_default_config

__all__ = ['acrobot_dqn_default_config', 'acrobot_ppo_default_config', 'acrobot_qrdqn_default_config']
