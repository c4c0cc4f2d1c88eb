"""Defaults of a replay buffer, as the config section that they fill."""

from easydict import EasyDict

from nervex.utils.import_helper import load_attribute

_NAMES = ('buffer_manager_default_config',)


def __getattr__(name: str) -> EasyDict:
    if name not in _NAMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}; it has {", ".join(_NAMES)}')
    buffers = load_attribute('nervex.data.buffer_options:read_options')({})
    return EasyDict(replay_buffer=dict(buffer_name=list(buffers), **buffers))
