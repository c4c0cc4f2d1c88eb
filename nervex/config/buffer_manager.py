"""Defaults of a replay buffer, as the config section that they fill."""

from easydict import EasyDict

from nervex.utils.import_helper import load_attribute

_buffers = load_attribute('nervex.data.buffer_options:read_options')({})
buffer_manager_default_config = EasyDict(replay_buffer=dict(buffer_name=list(_buffers), **_buffers))
