"""Defaults of a replay buffer, as the config section that they fill."""

from easydict import EasyDict

from nervex.config.buffers import merge_buffers
from nervex.config.sections import section_declared
from nervex.loader.problems import Problems

_NAMES = ('buffer_manager_default_config',)


def __getattr__(name: str) -> EasyDict:
    if name not in _NAMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}; it has {", ".join(_NAMES)}')
    return EasyDict(replay_buffer=merge_buffers({}, section_declared('replay_buffer'), Problems()))
