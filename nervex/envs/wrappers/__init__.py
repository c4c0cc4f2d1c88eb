"""Wrappers of Gym objects. A config names them: ``env.wrappers = ['atari']``; see ``wrap`` for the forms."""

from nervex.envs.wrappers.atari import (
    ClipReward,
    EpisodicLife,
    FireReset,
    FrameStack,
    MaxAndSkip,
    NoopReset,
    ScaledFloat,
    WarpFrame,
    wrap_atari,
)
from nervex.envs.wrappers.base import WRAPPER_REGISTRY, GymWrapper, wrap
from nervex.envs.wrappers.time_limit import TimeLimit
from nervex.envs.wrappers.video import RecordVideo

__all__ = [
    'WRAPPER_REGISTRY',
    'ClipReward',
    'EpisodicLife',
    'FireReset',
    'FrameStack',
    'GymWrapper',
    'MaxAndSkip',
    'NoopReset',
    'RecordVideo',
    'ScaledFloat',
    'TimeLimit',
    'WarpFrame',
    'wrap',
    'wrap_atari',
]
