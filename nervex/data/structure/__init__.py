"""The parts that buffers are made of. Names are imported when they are first used."""

from nervex.utils.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        'Cache': 'nervex.data.structure.cache:Cache',
        'InTickMonitor': 'nervex.data.structure.monitors:InTickMonitor',
        'ListReplayBuffer': 'nervex.data.replay_buffer:ListReplayBuffer',
        'MinSegmentTree': 'nervex.data.structure.segment_tree:MinSegmentTree',
        'NaiveReplayBuffer': 'nervex.data.replay_buffer:ReplayBuffer',
        'NaturalMonitor': 'nervex.data.structure.monitors:NaturalMonitor',
        'OutTickMonitor': 'nervex.data.structure.monitors:OutTickMonitor',
        'PrioritizedBuffer': 'nervex.data.replay_buffer:PrioritizedReplayBuffer',
        'PrioritizedReplayBuffer': 'nervex.data.replay_buffer:PrioritizedReplayBuffer',
        'RecordList': 'nervex.data.structure.record_list:RecordList',
        'ReplayBuffer': 'nervex.data.replay_buffer:ReplayBuffer',
        'SegmentTree': 'nervex.data.structure.segment_tree:SegmentTree',
        'SumSegmentTree': 'nervex.data.structure.segment_tree:SumSegmentTree',
    },
)
