"""The row form of the Adder: lists of dict rows."""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from nervex.rl_utils.checks import ShapeError
from nervex.rl_utils.gae import gae, gae_data

Rows = Sequence[dict]


def nstep_rows(data: Rows, nstep: int, gamma: float | None, repeats: int) -> list[dict]:
    """
    Overview:
        See :meth:`nervex.rl_utils.adder.Adder.get_nstep_return_data`.
    """
    rows = list(data)
    if not rows:
        return []
    rewards = torch.stack([_number(row, 'reward') for row in rows])
    rewards = rewards if rewards.is_floating_point() else rewards.float()
    result = []
    for t in range(len(rows) - repeats):
        last = t
        while last + 1 < min(t + nstep, len(rows)) and not is_over(rows[last]):
            last += 1
        taken = last + 1 - t
        row = dict(rows[t])
        row['reward'] = torch.cat([rewards[t : last + 1], rewards.new_zeros(nstep - taken)])
        for key in ('next_obs', 'done', 'truncated'):
            if key in row:
                row[key] = rows[last][key]
        if gamma is not None:
            row['value_gamma'] = rewards.new_tensor(gamma**taken)
        result.append(row)
    return result


def gae_rows(data: Rows, last_value: torch.Tensor | float, gamma: float, gae_lambda: float) -> list[dict]:
    """
    Overview:
        See :meth:`nervex.rl_utils.adder.Adder.get_gae`. The rows are answered themselves, with ``adv`` added.
    """
    rows = list(data)
    if not rows:
        return []
    value = torch.stack([_number(row, 'value') for row in rows])
    value = value if value.is_floating_point() else value.float()
    reward = torch.stack([_number(row, 'reward').to(value) for row in rows])
    done, truncated = _flags(rows, 'done'), _flags(rows, 'truncated')
    if 'next_value' in rows[0]:
        following = torch.stack([_number(row, 'next_value').to(value) for row in rows])
    else:
        following = torch.stack([*value[1:], _number({'last_value': last_value}, 'last_value').to(value)])
    check_truncation(truncated, 'next_value' in rows[0])
    adv = gae(gae_data(value, reward, done, None if done is None else truncated, following), gamma, gae_lambda)
    shape = torch.as_tensor(rows[0]['value']).shape
    for row, advantage in zip(rows, adv):
        row['adv'] = advantage.reshape(shape)
    return rows


def check_truncation(truncated: torch.Tensor | None, has_next_value: bool) -> None:
    """
    Overview:
        Only the last step of a trajectory may be truncated without ``next_value``: it alone has its own last value.
    """
    if truncated is not None and not has_next_value and bool(truncated[:-1].any()):
        raise ValueError(
            'get_gae: an inner step is truncated, so its bootstrap value is not that of the next row; store the column '
            "'next_value', the value of each step's own next observation"
        )


def _flags(rows: Rows, key: str) -> torch.Tensor | None:
    return torch.tensor([bool(row[key]) for row in rows]) if key in rows[0] else None


def is_over(row: dict) -> bool:
    """
    Overview:
        Whether the episode ended with this row; a row that does not say so goes on.
    """
    return 'done' in row and bool(row['done'])


def _number(row: dict, key: str) -> torch.Tensor:
    value = torch.as_tensor(row[key])
    if value.numel() != 1:
        raise ShapeError(f"Adder: '{key}' of a row has shape {tuple(value.shape)}, expected one number a step")
    return value.reshape(())


def unroll_rows(data: Rows, unroll_len: int, last_fn_type: str, null_transition: dict | None) -> list[dict]:
    """
    Overview:
        See :meth:`nervex.rl_utils.adder.Adder.get_train_sample`.
    """
    rows = list(data)
    whole = len(rows) // unroll_len
    pieces = [rows[i * unroll_len : (i + 1) * unroll_len] for i in range(whole)]
    rest = rows[whole * unroll_len :]
    if rest and last_fn_type != 'drop':
        if last_fn_type == 'last' and whole > 0:
            pieces.append(rows[-unroll_len:])
        else:
            pieces.append(rest + [null_row(rest[-1], null_transition) for _ in range(unroll_len - len(rest))])
    return [_transpose(piece) for piece in pieces]


def null_row(template: dict, null_transition: dict | None) -> dict:
    """
    Overview:
        A padding row: a copy of the template, over, with reward 0 and value_gamma 0, and then what
        ``null_transition`` says.
    """
    row = {key: copy.deepcopy(value) for key, value in template.items()}
    row['done'] = torch.ones_like(row['done']) if isinstance(row['done'], torch.Tensor) else type(row['done'])(1)
    for key in ('reward', 'value_gamma'):
        if key in row:
            row[key] = row[key] * 0
    row.update(copy.deepcopy(null_transition or {}))
    return row


def _transpose(piece: list[Any]) -> Any:
    if isinstance(piece[0], dict):
        return {key: _transpose([row[key] for row in piece]) for key in piece[0]}
    return piece
