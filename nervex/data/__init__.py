"""Batch, collate functions, replay buffers, trajectory files. Names are imported when they are first used."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.data.batch': 'Batch',
    'nervex.data.buffer_manager': 'BufferManager',
    'nervex.data.collate': 'default_collate default_decollate diff_shape_collate timestep_collate',
    'nervex.data.dataloader': 'AsyncDataLoader IDataLoader',
    'nervex.data.names': 'FRAMEWORK_COLUMNS',
    'nervex.data.replay_buffer': 'ListReplayBuffer PrioritizedReplayBuffer ReplayBuffer',
    'nervex.data.trajectories': 'TrajectoryDataset TrajectoryError TrajectoryWriter',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
