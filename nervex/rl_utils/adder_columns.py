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
    columns = {key: traj[key][:kept] for key in traj.keys()}
    reward = _step_reward(traj['reward'], done.shape)
    if nstep == 1:
        columns['reward'] = reward[:kept, ..., None]
        return type(traj).of(columns)
    if kept == 0:
        columns['reward'] = reward[:0, ..., None].repeat(nstep, -1) if isinstance(reward, np.ndarray) else \
            reward[:0, ..., None].expand(*done[:0].shape, nstep)
        if gamma is not None:
            columns['value_gamma'] = reward[:0]
        return type(traj).of(columns)
    window, taken = _windows(_as_tensor(reward), _as_tensor(done), nstep, kept)
    take = _gatherer(taken, done.shape)
    columns['reward'] = _like(window, reward)
    for key in ('next_obs', 'done', 'truncated'):
        if key in columns:
            columns[key] = map_columns(traj[key], take)
    if gamma is not None:
        columns['value_gamma'] = _like(torch.pow(gamma, taken.to(window.dtype)), reward)
    return type(traj).of(columns)


def _windows(reward: torch.Tensor, done: torch.Tensor, nstep: int, kept: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rewards of each window, (T', [N], nstep), and how many steps it holds, (T', [N])."""
    beyond = max(0, kept + nstep - 1 - done.shape[0])
    ended = torch.cat([done.bool(), done.new_ones((beyond, *done.shape[1:]), dtype=torch.bool)])
    ended[done.shape[0] - 1] = True
    reward = torch.cat([reward, reward.new_zeros((beyond, *reward.shape[1:]))]) if beyond else reward
    window = reward.new_zeros((kept, *reward.shape[1:], nstep))
    window[..., 0] = reward[:kept]
    inside = torch.ones_like(ended[:kept])
    taken = inside.to(torch.int64)
    for k in range(1, nstep):
        inside = inside & ~ended[k - 1:k - 1 + kept]
        window[..., k] = torch.where(inside, reward[k:k + kept], 0.)
        taken += inside
    return window, taken


def _gatherer(taken: torch.Tensor, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """A function that picks the last row of each window out of a column (T, [N], *)."""
    kept = taken.shape[0]
    last = torch.arange(kept, device=taken.device).reshape(-1, *[1] * (taken.dim() - 1)) + taken - 1
    if len(shape) == 2:
        last = last * shape[1] + torch.arange(shape[1], device=taken.device)
    flat = last.reshape(-1)
    flat_numpy = flat.cpu().numpy()

    def take(column: Any) -> Any:
        rows = column.reshape(-1, *column.shape[len(shape):])
        picked = rows.index_select(0, flat.to(rows.device)) if isinstance(rows, torch.Tensor) else rows[flat_numpy]
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


def _like(result: torch.Tensor, column: Any) -> Any:
    return result if isinstance(column, torch.Tensor) else result.numpy()
