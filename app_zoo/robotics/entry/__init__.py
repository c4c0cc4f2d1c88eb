"""Configs of goals for robots."""

from app_zoo.robotics.entry.pointmaze_her_sac_default_config import pointmaze_her_sac_default_config

__all__ = ['pointmaze_her_sac_default_config']
