"""Traffic lights on SUMO."""

from app_zoo.sumo.envs.sumo_env import SumoEnv
from app_zoo.sumo.envs.sumo_team_env import SumoTeamEnv

__all__ = ['SumoEnv', 'SumoTeamEnv']
