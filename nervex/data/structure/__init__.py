"""The parts that buffers are made of. Names are imported when they are first used."""
from importlib import import_module
from typing import Any

_HOME = {
    'Cache': 'nervex.data.structure.cache:Cache',
    'InTickMonitor': 'nervex.data.structure.monitors:InTickMonitor',
    'ListReplayBuffer': 'nervex.data.replay_variants:ListReplayBuffer',
    'MinSegmentTree': 'nervex.data.structure.segment_tree:MinSegmentTree',
    'NaiveReplayBuffer': 'nervex.data.replay_buffer:ReplayBuffer',
    'NaturalMonitor': 'nervex.data.structure.monitors:NaturalMonitor',
    'OutTickMonitor': 'nervex.data.structure.monitors:OutTickMonitor',
    'PrioritizedBuffer': 'nervex.data.replay_variants:PrioritizedReplayBuffer',
    'PrioritizedReplayBuffer': 'nervex.data.replay_variants:PrioritizedReplayBuffer',
    'RecordList': 'nervex.data.structure.record_list:RecordList',
    'ReplayBuffer': 'nervex.data.replay_buffer:ReplayBuffer',
    'SegmentTree': 'nervex.data.structure.segment_tree:SegmentTree',
    'SumSegmentTree': 'nervex.data.structure.segment_tree:SumSegmentTree',
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f'module nervex.data.structure has no attribute {name!r}')
    module, _, attribute = _HOME[name].partition(':')
    value = globals()[name] = getattr(import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOME))
