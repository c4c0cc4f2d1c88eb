"""Games of the Arcade Learning Environment."""

from app_zoo.atari.envs.atari_env import AtariEnv

__all__ = ['AtariEnv']
