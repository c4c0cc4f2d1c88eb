"""Football by Google Research Football."""

from app_zoo.gfootball.envs.gfootball_env import GFootballEnv

__all__ = ['GFootballEnv']
