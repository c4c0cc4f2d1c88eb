"""
The border between workers and a policy's hooks. A hook with the mark ``@batched`` takes and gives columns of NumPy; one
without it gets the documented form, tensors and rows, by a wrapper that is put around it once. Behind this border
everything is columns.
"""

from __future__ import annotations

import dataclasses
from collections import deque
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
from nervex.utils.part_state import HasState

_REFUSED = frozenset(FRAMEWORK_COLUMNS) - set(OFFERED_COLUMNS)
_USUAL = "'obs', 'next_obs', 'action', 'reward', 'done'"


class ObsBlock(NamedTuple):
    """Observations of the ready envs: row k belongs to ``env_id[k]``."""

    env_id: np.ndarray
    obs: Any


# ---- hooks in columns
def in_columns(mode: Any) -> Any:
    """
    Overview:
        A collect or eval mode of which every hook takes and gives columns of NumPy, one row an env. Hooks without the
        mark get tensors: the preprocess a dict ``{env_id: row}``, the forward ``(ids, data on the policy's device)``,
        the postprocess what the forward gave, on the CPU; it answers ``{env_id: row}``; the transition one row a call.
    """
    device = mode.get_attribute('device')

    def prepare(block: ObsBlock) -> tuple[Any, Any]:
        rows = tree.unstack(to_tensors(block.obs), len(block.env_id))
        data_id, data = mode.data_preprocess(dict(zip(block.env_id.tolist(), rows)))
        return data_id, to_arrays(data)

    def forward(data_id: Any, data: Any) -> Any:
        return to_arrays(mode.forward(data_id, to_tensors(data, device)))

    def finish(data_id: Any, output: Any) -> Any:
        hook = mode.data_postprocess
        rows, ids = hook(data_id, to_tensors(output, torch.device('cpu'))), [int(i) for i in data_id]
        if not isinstance(rows, Mapping) or any(i not in rows for i in ids):
            got = f'the keys {list(rows)}' if isinstance(rows, Mapping) else f'a {type(rows).__name__}'
            raise TypeError(
                f'{name_of(hook)} answered {got}; without @batched it answers {{env_id: row}} for the envs {ids}. Mark '
                'it with @batched (nervex.policy) if it works on columns'
            )
        return to_arrays(said_by_rows([rows[i] for i in ids]))

    def transition(obs: Any, output: dict[str, Any], step: Any) -> dict[str, Any]:
        return columns_of(transition_rows(mode)(obs, output, step), step)

    ours = dict(data_preprocess=prepare, forward=forward, data_postprocess=finish, process_transition=transition)
    hooks = {name: getattr(mode, name, None) for name in ours}
    by_rows = {name: ours[name] for name, hook in hooks.items() if hook is not None and not is_batched(hook)}
    return dataclasses.replace(mode, **by_rows) if by_rows else mode


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
    found: dict[str, Any] = {}
    for name in rows[0].keys():
        try:
            values = [row[name] for row in rows]
            found[name] = values if name == 'prev_state' else tree.stack(values)
        except (ValueError, RuntimeError, KeyError) as error:
            raise ValueError(f'the rows of the column {name!r} do not fit together: {error}') from error
    return found


def as_columns(transition: Any, hook: Callable) -> dict[str, Any]:
    """What ``_process_transition`` answered, as a dict; TypeError for what is none."""
    if not isinstance(transition, (Mapping, Batch)):
        raise TypeError(
            f'{name_of(hook)} returned {transition!r:.80}; it must return a dict of columns, such as {_USUAL}. Does it '
            'end with `return transition`?'
        )
    return dict(transition)


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


def check_names(names: Any) -> None:
    """Refuse a column that the framework itself adds."""
    if not _REFUSED.isdisjoint(names):
        taken = sorted(_REFUSED.intersection(names))
        raise ValueError(
            f'_process_transition returned the column {taken[0]!r}, a name that the framework '
            f'itself adds; rename it (taken names: {", ".join(sorted(_REFUSED))})'
        )


# ---- transitions in rows
def transition_rows(mode: Any) -> Callable[[Any, dict[str, Any], Any], list[dict[str, Any]]]:
    """
    Overview:
        ``_process_transition`` as a function that answers one dict a row, in the documented types: tensors on memory of
        their own, ``done`` a bool.
    """
    hook = mode.process_transition
    if is_batched(hook):
        return lambda obs, output, step: rows_of(as_columns(hook(obs, output, step), hook), step)

    def by_row(obs: Any, output: dict[str, Any], step: Any) -> list[dict[str, Any]]:
        n, rows = len(step.env_id), []
        reward = step.reward.reshape(n, -1)
        seen, after, rewards = (tree.unstack(to_tensors(copied(part)), n) for part in (obs, step.obs, reward))
        said, done = said_rows(to_tensors(copied(output)), n), step.done.tolist()
        for k, info in enumerate(step.info):
            timestep = BaseEnvTimestep(after[k], rewards[k], done[k], dict(info))
            row = as_columns(hook(seen[k], said[k], timestep), hook)
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
    n, tensors = len(step.env_id), to_tensors(copied({name: as_array(value) for name, value in columns.items()}))
    if step.reward.ndim == 1 and 'reward' in tensors:
        tensors['reward'] = tensors['reward'].reshape(n, 1)
    flags = {name: columns[name].tolist() for name in ('done', 'truncated') if name in columns}
    return [
        {**row, **{name: flag[k] for name, flag in flags.items()}} for k, row in enumerate(tree.unstack(tensors, n))
    ]


class RowRollout(HasState):
    """
    Overview:
        The documented form for policies whose ``_get_train_sample`` takes rows: one deque of transitions an env, handed
        to the policy when the episode ends or ``traj_len`` rows are there. The policy pops what it used; rows that it
        leaves (for n-step overlap) stay until the episode ends. A policy that pops nothing has used everything.
    Interfaces:
        take, drop, state_dict, load_state_dict
    """

    resume_parts = ('_cache',)

    def __init__(self, mode: Any, env_num: int, traj_len: float) -> None:
        self._rows, self._hook, self._traj_len = transition_rows(mode), mode.get_train_sample, traj_len
        self._cache: list[deque] = [deque() for _ in range(env_num)]

    def take(self, obs: Any, output: dict[str, Any], step: Any, ends: bool) -> list[Batch]:
        """Append one transition an env; answers the training samples that became ready, as columns."""
        samples: list[Any] = []
        for k, row in enumerate(self._rows(obs, output, step)):
            check_names(row)
            row.setdefault('truncated', bool(step.truncated[k]))
            samples += self.add(int(step.env_id[k]), row, bool(step.done[k]))
        try:
            return [Batch.from_rows(samples).to_numpy()] if samples else []
        except KeyError as error:
            raise ValueError(f'{name_of(self._hook)}: {error.args[0]}') from error

    def add(self, env_id: int, transition: dict, done: bool) -> list[Any]:
        """Append one transition; answers the training samples that became ready, as the policy gave them."""
        samples: list[Any] = []
        cache = self._cache[env_id]
        cache.append(transition)
        if done:
            while cache and self._use(cache, samples):
                pass
            cache.clear()
        elif len(cache) >= self._traj_len:
            self._use(cache, samples)
        return samples

    def _use(self, cache: deque, samples: list[Any]) -> bool:
        before, columns = len(cache), cache[0]
        try:
            got = self._hook(cache)
        except KeyError as error:
            raise missing_column(error, columns, name_of(self._hook), '_process_transition must return it') from error
        got = [] if got is None else list(got) if isinstance(got, (list, tuple, deque, Batch)) else got
        if not isinstance(got, list) or not all(isinstance(row, (Mapping, Batch)) for row in got):
            raise TypeError(
                f'{name_of(self._hook)} returned {got!r:.80}; it must return a list of training samples, each a dict '
                'such as the transitions that it was given (or an empty list)'
            )
        samples.extend(got)
        if len(cache) == before and got:
            cache.clear()
        return len(cache) < before

    def drop(self, env_id: int) -> None:
        """Forget the steps of the unfinished episode of one env."""
        self._cache[env_id].clear()
