"""Configs of MountainCar."""

from app_zoo.classic_control.mountaincar.entry.mountaincar_dqn_default_config import mountaincar_dqn_default_config
from app_zoo.classic_control.mountaincar.entry.mountaincar_ppo_default_config import mountaincar_ppo_default_config

__all__ = ['mountaincar_dqn_default_config', 'mountaincar_ppo_default_config']
