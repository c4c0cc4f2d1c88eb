"""Multi-agent particle worlds."""

from app_zoo.multiagent_particle.envs.cooperative_navigation_env import CooperativeNavigationEnv

__all__ = ['CooperativeNavigationEnv']
