"""Wrappers of Gym objects. A config names them: ``env.wrappers = ['atari']``; see ``wrap`` for the forms."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.envs.wrappers.atari': (
        'ClipReward EpisodicLife FireReset FrameStack MaxAndSkip NoopReset ScaledFloat WarpFrame wrap_atari'
    ),
    'nervex.envs.wrappers.base': 'ActionRepeat GymWrapper TimeLimit WRAPPER_REGISTRY wrap',
    'nervex.envs.wrappers.video': 'RecordVideo',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
