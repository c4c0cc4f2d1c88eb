"""Traffic lights on SUMO."""

from app_zoo.sumo.envs.sumo_env import SumoEnv

__all__ = ['SumoEnv']
