"""The column form of the Adder: a Batch with time as first axis. No loop over time or envs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from nervex.rl_utils.adder_rows import check_truncation
from nervex.rl_utils.checks import ShapeError
from nervex.rl_utils.gae import gae, gae_data

Column = Any  # torch.Tensor, np.ndarray, or a nested Batch


def map_columns(column: Column, fn: Callable[[Any], Any]) -> Column:
    """
    Overview:
        Apply a function to every tensor or array of a Batch, nested ones included.
    """
    if isinstance(column, (torch.Tensor, np.ndarray)):
        return fn(column)
    return type(column).of({key: map_columns(column[key], fn) for key in column.keys()})


def nstep_columns(traj: Any, nstep: int, gamma: float | None, overlap: int) -> Any:
    """
    Overview:
        See :meth:`nervex.rl_utils.adder.Adder.get_nstep_return_data`.
    """
    done = traj['done']
    steps = done.shape[0]
    kept = steps - overlap
    if not 0 <= overlap <= steps:
        raise ShapeError(f'get_nstep_return_data: overlap {overlap} of a block of {steps} steps')
    columns = {key: traj[key][:kept] for key in traj.keys()} if overlap else dict(traj.items())
    reward = _step_reward(traj['reward'], done.shape)
    if nstep == 1:
        columns['reward'] = reward[:kept, ..., None]
        return type(traj).of(columns)
    window, taken = _windows(_as_numpy(reward), _as_numpy(done), nstep, kept)
    columns['reward'] = _like(window, reward)
    if gamma is not None:
        columns['value_gamma'] = _like(np.power(gamma, taken, dtype=window.dtype), reward)
    take = _gatherer(taken, done.shape)
    for key in ('next_obs', 'done', 'truncated'):
        if key in columns:
            columns[key] = map_columns(traj[key], take)
    return type(traj).of(columns)


def _windows(reward: np.ndarray, done: np.ndarray, nstep: int, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """The rewards of each window, (T', [N], nstep), and how many steps it holds, (T', [N])."""
    window = np.zeros((kept, *reward.shape[1:], nstep), reward.dtype)
    window[..., 0] = reward[:kept]
    taken = np.ones(window.shape[:-1], np.int64)
    inside = taken.astype(bool)
    for k in range(1, min(nstep, reward.shape[0])):
        ahead = min(kept, reward.shape[0] - k)  # the later windows leave the data
        inside[ahead:] = False
        inside[:ahead] &= done[k - 1 : k - 1 + ahead] == 0
        np.copyto(window[:ahead, ..., k], reward[k : k + ahead], where=inside[:ahead])
        taken += inside
    return window, taken


def _gatherer(taken: np.ndarray, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """A function that picks the last row of each window out of a column (T, [N], *)."""
    kept = taken.shape[0]
    last = np.arange(-1, kept - 1).reshape(-1, *[1] * (taken.ndim - 1)) + taken
    if len(shape) == 2:
        last = last * shape[1] + np.arange(shape[1])
    flat = last.reshape(-1)

    def take(column: Any) -> Any:
        rows = column.reshape(-1, *column.shape[len(shape) :])
        if isinstance(rows, torch.Tensor):
            picked = rows.index_select(0, torch.from_numpy(flat).to(rows.device))
        else:
            picked = rows.take(flat, 0)
        return picked.reshape(kept, *column.shape[1:])

    return take


def gae_columns(traj: Any, last_value: torch.Tensor | float, gamma: float, gae_lambda: float) -> Any:
    """
    Overview:
        See :meth:`nervex.rl_utils.adder.Adder.get_gae`.
    """
    columns = {key: traj[key] for key in traj.keys()}
    value = _as_tensor(columns['value'])
    reward = _as_tensor(_step_reward(columns['reward'], value.shape)).to(value.dtype)
    done, truncated, following = (
        _as_tensor(columns[key]) if key in columns else None for key in ('done', 'truncated', 'next_value')
    )
    check_truncation(truncated, following is not None)
    if following is None:
        last = torch.as_tensor(last_value, dtype=value.dtype, device=value.device)
        following = torch.cat([value[1:], last.expand(value.shape[1:]).unsqueeze(0)])
    adv = gae(gae_data(value, reward, done, None if done is None else truncated, following), gamma, gae_lambda)
    columns['adv'] = _like(adv, columns['value'])
    return type(traj).of(columns)


def unroll_columns(traj: Any, unroll_len: int, last_fn_type: str, null_transition: dict | None) -> Any:
    """
    Overview:
        See :meth:`nervex.rl_utils.adder.Adder.get_train_sample`.
    """
    shape = traj['done'].shape
    steps, rest = shape[0], shape[0] % unroll_len
    pad = 0
    starts = list(range(0, steps - rest, unroll_len))
    if rest and last_fn_type != 'drop':
        if last_fn_type == 'last' and starts:
            starts.append(steps - unroll_len)
        else:
            starts.append(steps - rest)
            pad = unroll_len - rest
    index = np.minimum(np.asarray(starts, np.int64)[:, None] + np.arange(unroll_len), steps - 1).reshape(-1)

    def cut(column: Any) -> Any:
        is_tensor = isinstance(column, torch.Tensor)
        picked = column[torch.from_numpy(index).to(column.device)] if is_tensor else column[index]
        picked = picked.reshape(len(starts), unroll_len, *column.shape[1:])
        if len(shape) == 2:  # (pieces, unroll_len, N, *) -> (pieces, N, unroll_len, *)
            picked = picked.swapaxes(1, 2)
            picked = picked.reshape(-1, *picked.shape[2:])
        return picked

    columns = {key: map_columns(traj[key], cut) for key in traj.keys()}
    if pad:
        zeros = {key: 0 for key in ('reward', 'value_gamma') if key in columns}
        filler = {'done': 1, **zeros, **(null_transition or {})}
        first = len(columns['done']) - (shape[1] if len(shape) == 2 else 1)
        for key, value in filler.items():
            columns[key] = _fill(columns[key], value, first, unroll_len - pad)
    return type(traj).of(columns)


def _fill(column: Column, value: Any, first: int, start: int) -> Column:
    """Set the padding steps of the last pieces. The columns were gathered, so this memory is our own."""
    if isinstance(column, torch.Tensor):
        column[first:, start:] = torch.as_tensor(value, dtype=column.dtype, device=column.device)
    elif isinstance(column, np.ndarray):
        column[first:, start:] = value
    else:
        for key in value:
            _fill(column[key], value[key], first, start)
    return column


def to_rows(traj: Any) -> list[dict]:
    """
    Overview:
        The rows of a Batch (T, ...) as dicts of tensors.
    """
    columns = {key: _as_tensor(traj[key]) for key in traj.keys()}
    return [{key: column[t] for key, column in columns.items()} for t in range(len(traj))]


def from_rows(rows: list[dict], like: Any) -> Any:
    """
    Overview:
        The inverse of :func:`to_rows`: columns of the shape, dtype and kind that ``like`` has.
    """
    if not rows:
        return like[:0]
    columns = {}
    for key in rows[0]:
        column = torch.stack([torch.as_tensor(row[key]) for row in rows])
        columns[key] = _like(column.reshape(len(rows), *like[key].shape[1:]), like[key])
    return type(like).of(columns)


def _step_reward(reward: Any, shape: tuple[int, ...]) -> Any:
    if tuple(reward.shape) == (*shape, 1):
        return reward[..., 0]
    if tuple(reward.shape) != tuple(shape):
        raise ShapeError(f'Adder: reward has shape {tuple(reward.shape)}, expected {tuple(shape)} or {(*shape, 1)}')
    return reward


def _as_tensor(column: Any) -> torch.Tensor:
    return column if isinstance(column, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(column))


def _as_numpy(column: Any) -> np.ndarray:
    return column.detach().cpu().numpy() if isinstance(column, torch.Tensor) else column


def _like(result: Any, column: Any) -> Any:
    """A result as the kind of column that it comes from."""
    if not isinstance(column, torch.Tensor):
        return result.numpy() if isinstance(result, torch.Tensor) else result
    return (result if isinstance(result, torch.Tensor) else torch.from_numpy(result)).to(column.device)
