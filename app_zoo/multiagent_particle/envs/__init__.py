"""Multi-agent particle worlds."""

from app_zoo.multiagent_particle.envs.cooperative_navigation_env import CooperativeNavigationEnv
from app_zoo.multiagent_particle.envs.simple_tag_env import SimpleTagEnv

__all__ = ['CooperativeNavigationEnv', 'SimpleTagEnv']
