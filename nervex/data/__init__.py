"""Batch, collate functions, replay buffers, trajectory files. Names are imported when they are first used."""
from importlib import import_module
from typing import Any

_HOME = {
    'AsyncDataLoader': 'dataloader',
    'Batch': 'batch',
    'BufferManager': 'buffer_manager',
    'FRAMEWORK_COLUMNS': 'names',
    'IDataLoader': 'dataloader',
    'ListReplayBuffer': 'replay_variants',
    'PrioritizedReplayBuffer': 'replay_variants',
    'ReplayBuffer': 'replay_buffer',
    'TrajectoryDataset': 'trajectories',
    'TrajectoryError': 'trajectory_file',
    'TrajectoryWriter': 'trajectories',
    'default_collate': 'collate',
    'default_decollate': 'collate',
    'diff_shape_collate': 'collate',
    'timestep_collate': 'collate',
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f'module nervex.data has no attribute {name!r}')
    value = globals()[name] = getattr(import_module(f'nervex.data.{_HOME[name]}'), name)
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOME))
