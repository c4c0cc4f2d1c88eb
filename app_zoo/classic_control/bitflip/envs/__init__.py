"""The BitFlip env."""

from app_zoo.classic_control.bitflip.envs.bitflip_env import BitFlipEnv

__all__ = ['BitFlipEnv']
