"""Configs of BitFlip."""

from app_zoo.classic_control.bitflip.entry.bitflip_dqn_default_config import bitflip_dqn_default_config
from app_zoo.classic_control.bitflip.entry.bitflip_her_dqn_default_config import bitflip_her_dqn_default_config

__all__ = ['bitflip_dqn_default_config', 'bitflip_her_dqn_default_config']
