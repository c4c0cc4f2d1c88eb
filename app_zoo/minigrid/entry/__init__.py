"""Configs of rooms."""

from app_zoo.minigrid.entry.minigrid_ppo_default_config import minigrid_ppo_default_config

__all__ = ['minigrid_ppo_default_config']
