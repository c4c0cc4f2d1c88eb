"""
The border between workers and a policy's hooks. A hook with the mark ``@batched`` takes and gives columns of NumPy; one
without it gets the documented form, tensors and rows, by a wrapper that is put around it once. Behind this border
everything is columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from nervex.data import Batch
from nervex.data.names import FRAMEWORK_COLUMNS, OFFERED_COLUMNS, missing_column
from nervex.envs import BaseEnvTimestep
from nervex.policy.action_space import joined
from nervex.policy.batched import is_batched, name_of
from nervex.torch_utils.crossing import to_arrays, to_tensors
from nervex.utils import tree

_REFUSED = frozenset(FRAMEWORK_COLUMNS) - set(OFFERED_COLUMNS)
_USUAL = "'obs', 'next_obs', 'action', 'reward', 'done'"

Act = Callable[[np.ndarray, Any], dict[str, Any]]
Transition = Callable[[Any, dict[str, Any], Any], dict[str, Any]]


class ObsBlock(NamedTuple):
    """Observations of the ready envs: row k belongs to ``env_id[k]``."""

    env_id: np.ndarray
    obs: Any


# ---- acting
def acting(mode: Any) -> Act:
    """
    Overview:
        Preprocess, forward and postprocess of a collect or eval mode as one function ``(env ids, observations) ->
        columns``, all of NumPy, one row an env. Hooks without the mark get tensors: the preprocess a dict ``{env_id:
        row}``, the forward ``(ids, data on the policy's device)``, the postprocess what the forward gave, on the CPU;
        it answers ``{env_id: row}``.
    """
    prepare, forward, finish = mode.data_preprocess, mode.forward, mode.data_postprocess
    by_blocks, in_arrays, in_columns = (is_batched(hook) for hook in (prepare, forward, finish))

    def in_one_form(ids: np.ndarray, obs: Any) -> dict[str, Any]:
        data_id, data = prepare(ObsBlock(ids, obs))
        return finish(data_id, forward(data_id, data))

    def across(ids: np.ndarray, obs: Any) -> dict[str, Any]:
        if by_blocks:
            data_id, data = prepare(ObsBlock(ids, obs))
        else:
            data_id, data = prepare(dict(zip(ids.tolist(), tree.unstack(to_tensors(obs), len(ids)))))
        output = forward(data_id, to_arrays(data) if in_arrays else to_tensors(data, device))
        if in_columns:
            return finish(data_id, to_arrays(output))
        rows = finish(data_id, to_tensors(output, torch.device('cpu')))
        if not isinstance(rows, Mapping) or any(int(i) not in rows for i in ids):
            got = f'the keys {list(rows)}' if isinstance(rows, Mapping) else f'a {type(rows).__name__}'
            raise TypeError(
                f'{name_of(finish)} answered {got}; without @batched it answers {{env_id: row}} for the envs '
                f'{ids.tolist()}. Mark it with @batched (nervex.policy) if it works on columns'
            )
        return to_arrays(said_by_rows([rows[int(i)] for i in ids]))

    device = mode.get_attribute('device')
    return in_one_form if by_blocks and in_arrays and in_columns else across


def said_rows(output: Mapping, count: int) -> list[dict[str, Any]]:
    """
    Overview:
        What a policy said for each row: of a column its row, of several action heads (a list, or a tuple) one of each,
        of ``prev_state``, a list with one state an env, that state.
    """
    columns = {
        name: value if name == 'prev_state' and isinstance(value, list) else tree.unstack(value, count)
        for name, value in output.items()
    }
    return [{name: rows[k] for name, rows in columns.items()} for k in range(count)]


def said_by_rows(rows: Sequence[Mapping]) -> dict[str, Any]:
    """The inverse of :func:`said_rows`."""
    names = rows[0].keys()
    return {name: [row[name] for row in rows] if name == 'prev_state' else _stacked(rows, name) for name in names}


def _stacked(rows: Sequence[Mapping], name: str) -> Any:
    try:
        return tree.stack([row[name] for row in rows])
    except (ValueError, RuntimeError, KeyError) as error:
        raise ValueError(f'the rows of the column {name!r} do not fit together: {error}') from error


# ---- transitions
def transitions(mode: Any) -> Transition:
    """
    Overview:
        ``_process_transition`` as a function ``(observations, what the policy said, StepBlock) -> columns of NumPy``,
        nested ones as dicts; a hook without the mark is called once a row.
    """
    hook = mode.process_transition
    if not is_batched(hook):
        by_row = transition_rows(mode)
        return lambda obs, output, step: columns_of(by_row(obs, output, step), step)

    def in_columns(obs: Any, output: dict[str, Any], step: Any) -> dict[str, Any]:
        columns = hook(obs, output, step)
        if type(columns) is not dict:
            columns = dict(_checked(columns, hook))
        for name, value in columns.items():
            if type(value) is not np.ndarray:
                columns[name] = as_array(value)
        return columns

    return in_columns


def transition_rows(mode: Any) -> Callable[[Any, dict[str, Any], Any], list[dict[str, Any]]]:
    """
    Overview:
        ``_process_transition`` as a function that answers one dict a row, in the documented types: tensors on memory of
        their own, ``done`` a bool.
    """
    hook = mode.process_transition
    if is_batched(hook):
        in_columns = transitions(mode)
        return lambda obs, output, step: rows_of(in_columns(obs, output, step), step)

    def by_row(obs: Any, output: dict[str, Any], step: Any) -> list[dict[str, Any]]:
        n, rows = len(step.env_id), []
        reward = step.reward.reshape(n, -1)
        seen, after, rewards = (tree.unstack(to_tensors(copied(part)), n) for part in (obs, step.obs, reward))
        said, done = said_rows(to_tensors(copied(output)), n), step.done.tolist()
        for k, info in enumerate(step.info):
            timestep = BaseEnvTimestep(after[k], rewards[k], done[k], dict(info))
            row = dict(_checked(hook(seen[k], said[k], timestep), hook))
            if isinstance(row.get('action'), (list, tuple)):
                row['action'] = joined(row['action'])
            rows.append(row)
        return rows

    return by_row


def columns_of(rows: Sequence[Mapping], step: Any) -> dict[str, Any]:
    """Rows of one step as columns of NumPy; a reward of shape (1, ) in each row is one number."""
    columns = {name: as_array(value) for name, value in Batch.from_rows(rows).to_dict().items()}
    reward = columns.get('reward')
    if reward is not None and step.reward.ndim == 1 and reward.shape == (len(rows), 1):
        columns['reward'] = reward.reshape(-1)
    return columns


def rows_of(columns: Mapping, step: Any) -> list[dict[str, Any]]:
    """The inverse of :func:`columns_of`."""
    n, tensors = len(step.env_id), to_tensors(copied(dict(columns)))
    if step.reward.ndim == 1 and 'reward' in tensors:
        tensors['reward'] = tensors['reward'].reshape(n, 1)
    flags = {name: columns[name].tolist() for name in ('done', 'truncated') if name in columns}
    return [
        {**row, **{name: flag[k] for name, flag in flags.items()}} for k, row in enumerate(tree.unstack(tensors, n))
    ]


def check_names(names: Any) -> None:
    """Refuse a column that the framework itself adds."""
    if not _REFUSED.isdisjoint(names):
        taken = sorted(_REFUSED.intersection(names))
        raise ValueError(
            f'_process_transition returned the column {taken[0]!r}, a name that the framework '
            f'itself adds; rename it (taken names: {", ".join(sorted(_REFUSED))})'
        )


def as_array(value: Any) -> Any:
    """A column as NumPy; nested ones become dicts, several action heads the last axis."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (torch.Tensor, np.ndarray)):
        return to_arrays(joined(list(value)))
    if isinstance(value, (Mapping, Batch)):
        return {name: as_array(value[name]) for name in value.keys()}
    return to_arrays(value) if isinstance(value, torch.Tensor) else np.asarray(value)


def copied(values: Any) -> Any:
    """Arrays on memory of their own: rows outlive the env manager's blocks."""
    return tree.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, values)


def _checked(transition: Any, hook: Callable) -> Any:
    if not isinstance(transition, (Mapping, Batch)):
        raise TypeError(
            f'{name_of(hook)} returned {transition!r:.80}; it must return a dict of columns, such as {_USUAL}. Does it '
            'end with `return transition`?'
        )
    return transition


# ---- training samples
def sampler(mode: Any) -> Callable[[Batch], Batch]:
    """``_get_train_sample`` of a policy that takes columns, with its answer checked."""
    hook = mode.get_train_sample

    def cut(traj: Batch) -> Batch:
        try:
            samples = hook(traj)
        except KeyError as error:
            raise missing_column(error, traj.keys(), name_of(hook), '_process_transition must return it') from error
        if not isinstance(samples, Batch):
            raise TypeError(
                f'{name_of(hook)} returned a {type(samples).__name__} for a Batch of steps; marked with @batched, it '
                'must return a Batch of training samples'
            )
        return samples

    return cut
