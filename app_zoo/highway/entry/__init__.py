"""Configs of driving."""

from app_zoo.highway.entry.highway_dqn_default_config import highway_dqn_default_config

__all__ = ['highway_dqn_default_config']
