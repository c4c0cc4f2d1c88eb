"""Rows to batches of tensors and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch

_ARRAYS, _FLOATS = (torch.Tensor, np.ndarray), (float, np.floating)


def default_collate(batch: Sequence[Any] | Batch) -> Any:
    """
    Overview:
        Turn a list of rows into one row of batched tensors. Works on tensors, arrays, numbers, bools, strings, dicts,
        namedtuples and sequences (which are transposed), nested at will. A Batch, whose rows are stacked already,
        becomes a dict of tensors.
    Arguments:
        - batch (:obj:`list | Batch`): rows of equal structure
    Returns:
        - collated (:obj:`Any`): the structure of one row; floats are float32, ints int64, strings stay a list
    Shapes:
        - tensor or array: B times :math:`(*)` -> :math:`(B, *)`; B times :math:`(1, )` -> :math:`(B, )`
        - number or bool: :math:`(B, )`
    Examples:
        >>> default_collate([{'obs': torch.zeros(4), 'reward': torch.ones(1)}] * 8)['reward'].shape
        torch.Size([8])
    """
    if isinstance(batch, Batch):
        return _squeezed(batch.to_torch())
    first = _first(batch, 'default_collate')
    if isinstance(first, _ARRAYS):
        if isinstance(first, np.ndarray) and first.dtype.kind in 'SUO':
            raise TypeError(f'default_collate: an array of dtype {first.dtype} cannot become a tensor')
        return _joined(torch.cat if first.shape == (1,) else torch.stack, batch)
    if isinstance(first, (bool, np.bool_)) and all(isinstance(v, (bool, np.bool_)) for v in batch):
        return torch.tensor([bool(v) for v in batch], dtype=torch.bool)
    if isinstance(first, (int, np.integer, *_FLOATS)):
        if any(isinstance(v, _FLOATS) for v in batch):  # an int among them is a float that is written short
            return torch.tensor([float(v) for v in batch], dtype=torch.float32)
        return torch.tensor([int(v) for v in batch], dtype=torch.int64)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if first is None and all(v is None for v in batch):
        return None
    return _collate_containers(batch, default_collate, 'default_collate')


def _first(batch: Any, name: str) -> Any:
    if not len(batch):
        raise ValueError(f'{name}: got no rows, at least one is needed')
    return batch[0]


def _joined(join: Callable, batch: Sequence) -> torch.Tensor:
    try:
        return join([torch.as_tensor(v) if isinstance(v, np.ndarray) else v for v in batch], 0)
    except (RuntimeError, TypeError) as e:
        kinds = dict.fromkeys(f'{tuple(v.shape)} {v.dtype}' if hasattr(v, 'shape') else type(v).__name__ for v in batch)
        raise ValueError(
            f'rows that differ do not stack: {", ".join(kinds)}; diff_shape_collate leaves them a list ({e})'
        ) from e


def _collate_containers(batch: Sequence[Any], collate: Callable, name: str) -> Any:
    first = batch[0]
    if hasattr(first, 'keys'):
        for position, row in enumerate(batch):
            if odd := sorted(set(row.keys()) ^ set(first.keys()), key=str):
                raise KeyError(f'{name}: row {position} differs from row 0 in key(s) {odd}')
        return _by_key(collate, batch, list(first.keys()))
    if isinstance(first, tuple) and hasattr(first, '_fields'):
        return type(first)(*(collate(parts) for parts in zip(*batch)))
    if isinstance(first, Sequence):
        lengths = {len(v) for v in batch}
        if len(lengths) > 1:
            raise ValueError(f'{name}: sequences of different lengths {sorted(lengths)} cannot be transposed')
        return [collate(parts) for parts in zip(*batch)]
    raise TypeError(
        f'{name}: rows of type {type(first).__name__} are not supported; use tensors, arrays, numbers, '
        'bools, strings, dicts, namedtuples or sequences'
    )


def _by_key(collate: Callable, rows: Sequence[Any], keys: Sequence) -> dict:
    out = {}
    for key in keys:
        try:
            out[key] = collate([row[key] for row in rows])
        except (TypeError, ValueError) as e:
            raise (TypeError if isinstance(e, TypeError) else ValueError)(f"key '{key}': {e}") from e
    return out


def _squeezed(column: Any) -> Any:
    """A column, or a dict of them, as collating its rows would give it: (B, 1) -> (B, )."""
    if isinstance(column, dict):
        return {name: _squeezed(part) for name, part in column.items()}
    if isinstance(column, torch.Tensor):
        return column.squeeze(1) if column.dim() == 2 and column.shape[1] == 1 else column
    return default_collate(list(column)) if isinstance(column, np.ndarray) and column.dtype == object else column


def default_decollate(batch: Any, ignore: Sequence[str] = ('prev_state',)) -> list[Any]:
    """
    Overview:
        The inverse of ``default_collate``: one row of batched tensors becomes a list of rows.
    Arguments:
        - batch (:obj:`Any`): tensor, sequence, namedtuple, dict or Batch; all parts with the same number of rows
        - ignore (:obj:`Sequence[str]`): dict keys whose value already is a list with one item a row
    Returns:
        - rows (:obj:`list`): one per row; a tensor of shape (B, ) gives B tensors of shape (1, )
    Shapes:
        - :math:`(B, *)` -> B times :math:`(*)`; :math:`(B, )` -> B times :math:`(1, )`
    """
    if isinstance(batch, torch.Tensor):
        return list(batch.split(1)) if batch.dim() == 1 else list(batch.unbind(0))
    if isinstance(batch, np.ndarray):
        return list(np.split(batch, len(batch))) if batch.ndim == 1 and batch.dtype != object else list(batch)
    if isinstance(batch, (str, bytes)) or not isinstance(batch, (Mapping, Batch, Sequence)):
        raise TypeError(
            f'default_decollate: {type(batch).__name__} is not supported; use tensors, arrays, dicts, '
            'namedtuples or sequences of them'
        )
    if isinstance(batch, Sequence) and (not batch or isinstance(batch[0], (str, bytes))):
        return list(batch)
    items = enumerate(batch) if isinstance(batch, Sequence) else batch.items()
    parts = {key: value if key in ignore else default_decollate(value, ignore) for key, value in items}
    lengths = {key: len(value) for key, value in parts.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f'default_decollate: parts with different numbers of rows: {lengths}')
    rows = zip(*parts.values())
    if hasattr(batch, '_fields'):
        return [type(batch)(*row) for row in rows]
    return [list(row) if isinstance(batch, Sequence) else dict(zip(parts, row)) for row in rows]


def timestep_collate(batch: Sequence[Mapping] | Batch) -> dict[str, Any]:
    """
    Overview:
        Collate sequences for recurrent nets: time first, batch second. The inputs are neither changed nor aliased.
    Arguments:
        - batch (:obj:`list[dict]`): each value is a list of T items, or an array or tensor whose first axis is time
    Returns:
        - collated (:obj:`dict`): tensors with time first; ``prev_state`` is a list of T lists of B states
    Shapes:
        - B times T items :math:`(*)` -> :math:`(T, B, *)`
    """
    first = _first(batch, 'timestep_collate')
    keys = [key for key in first.keys() if key != 'prev_state']
    if isinstance(batch, Batch):
        out = {k: _time_first(v) for k, v in Batch.of({k: batch[k] for k in keys}).to_torch().items()}
    else:
        out = _by_key(_stack_time, batch, keys)
    if 'prev_state' in first:
        states = batch['prev_state'] if isinstance(batch, Batch) else [row['prev_state'] for row in batch]
        out['prev_state'] = [list(step) for step in zip(*states)]
    return out


def _time_first(column: Any) -> Any:
    if isinstance(column, dict):
        return {k: _time_first(v) for k, v in column.items()}
    if isinstance(column, torch.Tensor) and column.dim() > 1:
        column = column.transpose(0, 1)
        return (column.squeeze(2) if column.dim() == 3 and column.shape[2] == 1 else column).contiguous()
    if isinstance(column, np.ndarray) and column.dtype == object:
        return _stack_time(list(column))
    return column.clone() if isinstance(column, torch.Tensor) else column


def _stack_time(values: Sequence[Any]) -> Any:
    """The values of one key in all rows -> (T, B, *)."""
    first = values[0]
    if hasattr(first, 'keys'):
        return _by_key(_stack_time, values, list(first.keys()))
    if isinstance(first, _ARRAYS) and first.ndim > 0:
        return _time_first(_joined(torch.stack, values))
    collated = default_collate(values)
    steps = isinstance(first, Sequence) and not isinstance(first, (str, bytes))
    return _stack_steps(collated) if steps else collated


def _stack_steps(steps: Any) -> Any:
    """A list of T collated steps -> one structure with time as the first axis of each tensor."""
    if isinstance(steps[0], torch.Tensor):
        return torch.stack(steps, 0)
    if isinstance(steps[0], Mapping):
        return {k: _stack_steps([step[k] for step in steps]) for k in steps[0]}
    return steps


def diff_shape_collate(batch: Sequence[Any]) -> Any:
    """
    Overview:
        Like ``default_collate``, but parts that contain None or tensors of different shapes stay lists.
    """
    first = _first(batch, 'diff_shape_collate')
    if any(v is None for v in batch):
        return list(batch)
    if isinstance(first, _ARRAYS):
        tensors = [torch.as_tensor(v) for v in batch]
        return torch.stack(tensors) if len({t.shape for t in tensors}) == 1 else tensors
    if isinstance(first, (bool, int, float, str, bytes, np.generic)):
        return default_collate(batch)
    if isinstance(first, Sequence) and not hasattr(first, '_fields') and len({len(v) for v in batch}) > 1:
        return list(batch)
    return _collate_containers(batch, diff_shape_collate, 'diff_shape_collate')
