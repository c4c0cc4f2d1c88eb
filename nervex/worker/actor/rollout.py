"""Where an actor keeps the steps of the running episodes until they become training samples."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from nervex.data import Batch
from nervex.data.names import missing_column
from nervex.policy.batched import name_of
from nervex.policy.traj_block import TrajBlock
from nervex.utils import tree
from nervex.worker.actor.rows import Transition, check_names, transition_rows


class ColumnRollout:
    """
    Overview:
        Steps of N envs as columns of shape (window, N, ...), written in place. A window is ``overlap`` steps that the
        previous window ended with, and then new steps; when it is full, ``cut`` is called with a Batch (T, N), and the
        memory is handed over, never written again. While all envs stand at the same step, one write serves all of
        them; where they do not (asynchronous envs, a dropped episode), rows are written and cut env by env.
    Arguments:
        - transition (:obj:`Transition`): makes the columns of a step, see ``rows.transitions``
        - cut (:obj:`Callable`): turns a Batch (T, N) or (T, ) into training samples, see ``Policy._get_train_sample``
        - env_num (:obj:`int`): number of envs
        - window (:obj:`int | None`): new steps of a window; None cuts at episode ends only
        - overlap (:obj:`int`): steps at the end of a window that come again in the next one
        - together (:obj:`bool`): the envs step together: who is behind after a dropped episode is cut with the others,
          so that all stand at the same step again. False: everyone's window becomes full in its own time
    Interfaces:
        take, add, drop, state_dict, load_state_dict
    """

    def __init__(
        self,
        transition: Transition,
        cut: Callable[[Batch], Batch],
        env_num: int,
        window: int | None,
        overlap: int = 0,
        together: bool = True,
    ) -> None:
        self._transition, self._cut = transition, cut
        self._env_num, self._together = env_num, together
        self._whole = window is None
        self._overlap = 0 if window is None else overlap
        self._capacity = 64 if window is None else window + overlap
        self._columns: dict[str, Any] = {}
        self._position = np.zeros(env_num, dtype=np.int64)  # next row to write, per env
        self._episode_start = np.zeros(env_num, dtype=np.int64)  # first row of the running episode, per env
        self._step = 0  # next row while all envs stand at the same one
        self._uniform = not self._whole

    def take(self, obs: Any, output: dict[str, Any], step: Any, ends: bool) -> list[Batch]:
        """
        Overview:
            One step of some envs: what was seen, what the policy said, what the envs answered, and whether any episode
            ends with it. Answers the training samples that became ready.
        """
        columns = self._transition(obs, output, step)
        if 'truncated' not in columns:
            columns['truncated'] = step.truncated
        return self.add(step.env_id, step.whole, columns, step.done if ends else None)

    def add(self, ids: np.ndarray, all_envs: bool, columns: dict[str, Any], done: np.ndarray | None) -> list[Batch]:
        """
        Overview:
            Write one step of the envs ``ids``; answers the training samples of every window that became full.
        Arguments:
            - all_envs (:obj:`bool`): ids are all envs in order, so that whole rows can be written
            - columns (:obj:`dict[str, Any]`): n rows a column: arrays, or nested dicts of them
            - done (:obj:`np.ndarray | None`): which of these envs ended their episode with this step; None: none
        """
        if all_envs and self._uniform:
            self._write(self._step, columns)
            self._step += 1
            if done is not None:
                self._episode_start[done] = self._step
            return [self._cut_all()] if self._step == self._capacity else []
        self._leave_uniform()
        if self._whole and self._position[ids].max() >= self._capacity:
            self._grow()
        at = self._position[ids]
        self._write((at, ids), columns)
        self._position[ids] = at + 1
        ended = ids[:0] if done is None else ids[done]
        self._episode_start[ended] = self._position[ended]
        if self._whole:
            return [self._cut_one(int(env)) for env in ended]
        return self._cut_each(all_envs and self._together) if self._position.max() >= self._capacity else []

    def _write(self, at: Any, columns: dict[str, Any]) -> None:
        blocks = self._columns
        if len(blocks) != len(columns):
            self._begin(columns)
            blocks = self._columns
        try:
            for name, value in columns.items():
                block = blocks[name]
                if type(value) is np.ndarray and value.dtype is block.dtype:
                    block[at] = value
                else:
                    self._write_other(name, at, value)
        except KeyError:
            self._begin(columns)

    def _write_other(self, name: str, at: Any, value: Any) -> None:
        """A nested column, or one whose kind of numbers has changed: rewards that were whole numbers until now."""

        def fitting(block: np.ndarray, part: np.ndarray) -> np.ndarray:
            dtype = np.result_type(block, part) if block.dtype != object else block.dtype
            block = block if dtype == block.dtype else block.astype(dtype)
            block[at] = part
            return block

        self._columns[name] = tree.map(fitting, self._columns[name], value)

    def _begin(self, columns: dict[str, Any]) -> None:
        """Make room for columns that are seen for the first time."""
        if self._columns:
            odd = sorted(set(columns) ^ set(self._columns))
            raise ValueError(
                f'_process_transition returned the columns {", ".join(columns)} after steps with '
                f'{", ".join(self._columns)}: {odd[0]!r} must be there always or never'
            )
        check_names(columns)
        shape = self._capacity, self._env_num
        self._columns = tree.map(lambda x: np.empty((*shape, *x.shape[1:]), dtype=x.dtype), columns)

    def drop(self, env_id: int) -> None:
        """Forget the steps of the unfinished episode of one env."""
        self._leave_uniform()
        self._position[env_id] = self._episode_start[env_id]

    def state_dict(self) -> dict[str, Any]:
        """The steps of the running window, and where each env stands in it."""
        return {
            'columns': to_state(self._columns),
            'capacity': self._capacity,
            'position': to_state(self._position),
            'episode_start': to_state(self._episode_start),
            'step': self._step,
            'uniform': self._uniform,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._columns, self._capacity = from_state(state['columns']) or {}, state['capacity']
        self._position, self._episode_start = from_state(state['position']), from_state(state['episode_start'])
        self._step, self._uniform = state['step'], state['uniform']

    def _leave_uniform(self) -> None:
        if self._uniform:
            self._position[:] = self._step
            self._uniform = False

    def _cut_all(self) -> Batch:
        block, keep = self._columns, self._overlap
        moved = self._capacity - keep
        self._columns = {k: np.empty_like(v) if type(v) is np.ndarray else _empty_like(v) for k, v in block.items()}
        if keep:
            tree.write(self._columns, slice(0, keep), tree.index(block, slice(moved, None)))
        self._step = keep
        np.maximum(self._episode_start - moved, 0, out=self._episode_start)
        return self._cut(_block(block, keep))

    def _cut_each(self, all_envs: bool) -> list[Batch]:
        full = range(self._env_num) if all_envs else np.flatnonzero(self._position >= self._capacity)
        samples = [self._cut_one(int(env)) for env in full if self._position[env] > self._overlap]
        if all_envs and (self._position == self._position[0]).all():
            self._step, self._uniform = int(self._position[0]), True
        return samples

    def _cut_one(self, env: int) -> Batch:
        end, keep = int(self._position[env]), self._overlap
        block = tree.map(lambda column: column[:end, env].copy(), self._columns)
        if keep:
            tree.write(self._columns, (slice(0, keep), env), tree.index(block, slice(end - keep, None)))
        self._position[env] = keep
        self._episode_start[env] = max(int(self._episode_start[env]) - (end - keep), 0)
        return self._cut(_block(block, keep))

    def _grow(self) -> None:
        if not self._columns:
            return
        self._columns = tree.map(lambda x: np.concatenate([x, np.empty_like(x)]), self._columns)
        self._capacity *= 2


def _empty_like(column: Any) -> Any:
    return tree.map(np.empty_like, column)


def _block(columns: dict[str, Any], repeats: int) -> TrajBlock:
    """Columns as a window; nested ones become Batches."""
    nested = {k: v if type(v) is np.ndarray else Batch(v) for k, v in columns.items()}
    return TrajBlock.cut(nested, repeats)


class RowRollout:
    """
    Overview:
        The documented form for policies whose ``_get_train_sample`` takes rows: one deque of transitions an env, handed
        to the policy when the episode ends or ``traj_len`` rows are there. The policy pops what it used; rows that it
        leaves (for n-step overlap) stay until the episode ends. A policy that pops nothing has used everything.
    Interfaces:
        take, drop, state_dict, load_state_dict
    """

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
        if not samples:
            return []
        try:
            batch = Batch.from_rows(samples)
        except KeyError as error:
            raise ValueError(f'{name_of(self._hook)}: {error.args[0]}') from error
        return [batch.to_numpy()]

    def add(self, env_id: int, transition: dict, done: bool) -> list[Any]:
        """Append one transition; answers the training samples that became ready, as the policy gave them."""
        cache = self._cache[env_id]
        cache.append(transition)
        samples: list[Any] = []
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

    def state_dict(self) -> dict[str, Any]:
        """The rows of each env."""
        return {'cache': [to_state(list(cache)) for cache in self._cache]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._cache = [deque(from_state(rows)) for rows in state['cache']]


# ---- as what a checkpoint may hold
_ARRAY, _BATCH = '__array__', '__batch__'
_PLAIN = (bool, int, float, str, type(None))


def to_state(value: Any) -> Any:
    """
    Overview:
        Nested containers, Batches, arrays and tensors -> nested containers of tensors and plain values, which load with
        ``weights_only=True``. A tensor that is a view is copied, so that nothing larger is stored. Anything else is an
        error that names its type.
    """
    if isinstance(value, Batch):
        return {_BATCH: to_state(value.to_dict())}
    return tree.map(_leaf_state, value)


def _leaf_state(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone()
    if isinstance(leaf, (np.ndarray, np.generic)):
        array = np.array(leaf)
        if array.dtype == object:
            return {_ARRAY: to_state(array.reshape(-1).tolist()), 'shape': list(array.shape)}
        return {_ARRAY: torch.from_numpy(array)}
    if isinstance(leaf, _PLAIN):
        return leaf
    raise TypeError(f'a {type(leaf).__name__} cannot be saved in a run state; use arrays, tensors, numbers or strings')


def from_state(value: Any) -> Any:
    """Put back what ``to_state`` gave."""
    if isinstance(value, dict) and _BATCH in value:
        return Batch(from_state(value[_BATCH]))
    if isinstance(value, dict) and _ARRAY in value:
        if 'shape' not in value:
            return value[_ARRAY].numpy()
        objects = np.empty(len(value[_ARRAY]), dtype=object)
        objects[:] = from_state(value[_ARRAY])
        return objects.reshape(value['shape'])
    parts = tree.children(value)
    return value if parts is None else tree.rebuild(value, {key: from_state(part) for key, part in parts.items()})
