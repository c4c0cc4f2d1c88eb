"""
What the Adder computes, on columns with time as first axis and without a loop over time or envs; and its border, where
dict rows become columns of the numbers that matter, and the results go back into rows.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from nervex.rl_utils.checks import ShapeError
from nervex.rl_utils.gae import gae, gae_data
from nervex.utils import tree

Rows = Sequence[dict]


# ---- n-step returns
def nstep_columns(traj: Any, nstep: int, gamma: float | None, overlap: int) -> Any:
    """See :meth:`nervex.rl_utils.adder.Adder.get_nstep_return_data`."""
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
            columns[key] = tree.map(take, traj[key])
    samples = type(traj).of(columns)
    if gamma is not None or 'truncated' not in columns:
        return samples
    cut = (taken < nstep) & (_as_numpy(columns['truncated']) != 0)
    if cut.any() and cut.ndim > 1:
        raise ValueError(
            'get_nstep_return_data: a time limit cut windows short, whose next value counts by gamma to the power of '
            'the steps taken; pass gamma=, or hand over one env at a time, of which such rows are left out'
        )
    return samples[np.flatnonzero(~cut)] if cut.any() else samples


def nstep_rows(rows: Rows, nstep: int, gamma: float | None, repeats: int) -> list[dict]:
    """See :meth:`nervex.rl_utils.adder.Adder.get_nstep_return_data`."""
    if not rows:
        return []
    rewards = _numbers(rows, 'reward')
    window, taken = _windows(rewards.numpy(), np.array([is_over(row) for row in rows]), nstep, len(rows) - repeats)
    result = []
    for t, steps in enumerate(taken.tolist()):
        row, last = dict(rows[t]), rows[t + steps - 1]
        if gamma is None and steps < nstep and bool(last.get('truncated', False)):
            continue  # its next value counts by gamma ** steps, which nobody would know
        row['reward'] = torch.from_numpy(window[t])
        row.update({key: last[key] for key in ('next_obs', 'done', 'truncated') if key in row})
        if gamma is not None:
            row['value_gamma'] = rewards.new_tensor(gamma**steps)
        result.append(row)
    return result


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
        return _picked(rows, flat).reshape(kept, *column.shape[1:])

    return take


# ---- advantages
def gae_columns(traj: Any, last_value: torch.Tensor | float, gamma: float, gae_lambda: float) -> Any:
    """See :meth:`nervex.rl_utils.adder.Adder.get_gae`."""
    columns = dict(traj.items())
    value = _as_tensor(columns['value'])
    reward = _as_tensor(_step_reward(columns['reward'], value.shape)).to(value.dtype)
    done, truncated, following = (
        _as_tensor(columns[key]) if key in columns else None for key in ('done', 'truncated', 'next_value')
    )
    adv = _advantages(value, reward, done, truncated, following, last_value, gamma, gae_lambda)
    columns['adv'] = _like(adv, columns['value'])
    return type(traj).of(columns)


def gae_rows(rows: Rows, last_value: torch.Tensor | float, gamma: float, gae_lambda: float) -> list[dict]:
    """See :meth:`nervex.rl_utils.adder.Adder.get_gae`. The rows are answered themselves, with ``adv`` added."""
    if not rows:
        return []
    value = _numbers(rows, 'value')
    reward = _numbers(rows, 'reward').to(value)
    done, truncated = (
        torch.tensor([bool(row[key]) for row in rows]) if key in rows[0] else None for key in ('done', 'truncated')
    )
    following = _numbers(rows, 'next_value').to(value) if 'next_value' in rows[0] else None
    last = _number(last_value, 'last_value')
    adv = _advantages(value, reward, done, truncated, following, last, gamma, gae_lambda)
    shape = torch.as_tensor(rows[0]['value']).shape
    for row, advantage in zip(rows, adv):
        row['adv'] = advantage.reshape(shape)
    return list(rows)


def _advantages(
    value: torch.Tensor, reward: torch.Tensor, done: Any, truncated: Any, following: Any, last_value: Any, *args: float
) -> torch.Tensor:
    if following is None:
        if truncated is not None and bool(truncated[:-1].any()):  # the last step alone has its own last value
            raise ValueError(
                'get_gae: an inner step is truncated, so its bootstrap value is not that of the next row; store the '
                "column 'next_value', the value of each step's own next observation"
            )
        last = torch.as_tensor(last_value, dtype=value.dtype, device=value.device)
        following = torch.cat([value[1:], last.expand(value.shape[1:]).unsqueeze(0)])
    return gae(gae_data(value, reward, done, None if done is None else truncated, following), *args)


# ---- sequences
def unroll_columns(traj: Any, unroll_len: int, last_fn_type: str, null_transition: dict | None) -> Any:
    """See :meth:`nervex.rl_utils.adder.Adder.get_train_sample`."""
    shape = traj['done'].shape
    pieces, pad = _pieces(shape[0], unroll_len, last_fn_type)
    index = pieces.reshape(-1)

    def cut(column: Any) -> Any:
        picked = _picked(column, index).reshape(len(pieces), unroll_len, *column.shape[1:])
        if len(shape) == 2:  # (pieces, unroll_len, N, *) -> (pieces, N, unroll_len, *)
            picked = picked.swapaxes(1, 2)
            picked = picked.reshape(-1, *picked.shape[2:])
        return picked

    columns = {key: tree.map(cut, traj[key]) for key in traj.keys()}
    if pad:  # the columns were gathered, so this memory is our own
        zeros = {key: 0 for key in ('reward', 'value_gamma') if key in columns}
        at = slice(len(columns['done']) - (shape[1] if len(shape) == 2 else 1), None), slice(unroll_len - pad, None)
        for key, value in {'done': 1, **zeros, **(null_transition or {})}.items():
            if isinstance(value, dict):
                tree.write(dict(columns[key].items()), at, value)
            else:
                columns[key][at] = torch.as_tensor(value) if isinstance(columns[key], torch.Tensor) else value
    return type(traj).of(columns)


def unroll_rows(rows: Rows, unroll_len: int, last_fn_type: str, null_transition: dict | None) -> list[dict]:
    """See :meth:`nervex.rl_utils.adder.Adder.get_train_sample`."""
    pieces, pad = _pieces(len(rows), unroll_len, last_fn_type)
    cut = [[rows[t] for t in piece] for piece in pieces.tolist()]
    if pad:
        cut[-1][unroll_len - pad :] = [_null_row(rows[-1], null_transition) for _ in range(pad)]
    return [_transposed(piece) for piece in cut]


def _pieces(steps: int, unroll_len: int, last_fn_type: str) -> tuple[np.ndarray, int]:
    """The steps of each sequence, (M, unroll_len), and how many at the end of the last one are padding."""
    rest, pad = steps % unroll_len, 0
    starts = list(range(0, steps - rest, unroll_len))
    if rest and last_fn_type != 'drop':
        if last_fn_type == 'last' and starts:
            starts.append(steps - unroll_len)
        else:
            starts.append(steps - rest)
            pad = unroll_len - rest
    return np.minimum(np.asarray(starts, np.int64)[:, None] + np.arange(unroll_len), steps - 1), pad


def _null_row(template: dict, null_transition: dict | None) -> dict:
    """A copy of the template, over, with reward 0 and value_gamma 0, and then what ``null_transition`` says."""
    row = {key: copy.deepcopy(value) for key, value in template.items()}
    row['done'] = torch.ones_like(row['done']) if isinstance(row['done'], torch.Tensor) else type(row['done'])(1)
    for key in ('reward', 'value_gamma'):
        if key in row:
            row[key] = row[key] * 0
    row.update(copy.deepcopy(null_transition or {}))
    return row


def _transposed(piece: list[Any]) -> Any:
    if isinstance(piece[0], dict):
        return {key: _transposed([row[key] for row in piece]) for key in piece[0]}
    return piece


# ---- rows and columns
def to_rows(traj: Any) -> list[dict]:
    """The rows of a Batch (T, ...) as dicts of tensors."""
    columns = {key: _as_tensor(traj[key]) for key in traj.keys()}
    return [{key: column[t] for key, column in columns.items()} for t in range(len(traj))]


def from_rows(rows: list[dict], like: Any) -> Any:
    """The inverse of :func:`to_rows`: columns of the shape, dtype and kind that ``like`` has."""
    if not rows:
        return like[:0]
    columns = {}
    for key in rows[0]:
        column = torch.stack([torch.as_tensor(row[key]) for row in rows])
        columns[key] = _like(column.reshape(len(rows), *like[key].shape[1:]), like[key])
    return type(like).of(columns)


def is_over(row: dict) -> bool:
    """Whether the episode ended with this row; a row that does not say so goes on."""
    return 'done' in row and bool(row['done'])


def _numbers(rows: Rows, key: str) -> torch.Tensor:
    """A column of one number a row, as floats."""
    numbers = torch.stack([_number(row[key], key) for row in rows])
    return numbers if numbers.is_floating_point() else numbers.float()


def _number(value: Any, key: str) -> torch.Tensor:
    number = torch.as_tensor(value).detach().cpu()
    if number.numel() != 1:
        raise ShapeError(f"Adder: '{key}' of a row has shape {tuple(number.shape)}, expected one number a step")
    return number.reshape(())


def _step_reward(reward: Any, shape: tuple[int, ...]) -> Any:
    if tuple(reward.shape) == (*shape, 1):
        return reward[..., 0]
    if tuple(reward.shape) != tuple(shape):
        raise ShapeError(f'Adder: reward has shape {tuple(reward.shape)}, expected {tuple(shape)} or {(*shape, 1)}')
    return reward


def _picked(column: Any, index: np.ndarray) -> Any:
    if isinstance(column, torch.Tensor):
        return column.index_select(0, torch.from_numpy(index).to(column.device))
    return column.take(index, 0)


def _as_tensor(column: Any) -> torch.Tensor:
    return column if isinstance(column, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(column))


def _as_numpy(column: Any) -> np.ndarray:
    return column.detach().cpu().numpy() if isinstance(column, torch.Tensor) else column


def _like(result: Any, column: Any) -> Any:
    """A result as the kind of column that it comes from."""
    if not isinstance(column, torch.Tensor):
        return result.numpy() if isinstance(result, torch.Tensor) else result
    return (result if isinstance(result, torch.Tensor) else torch.from_numpy(result)).to(column.device)
