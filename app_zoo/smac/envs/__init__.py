"""The micro-battle: SMAC's maps in NumPy."""

from app_zoo.smac.envs.smac_env import SMACEnv

__all__ = ['SMACEnv']
