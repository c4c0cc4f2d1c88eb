"""Where an actor keeps the steps of the running episodes until they become training samples."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.data import Batch
from nervex.policy.traj_block import TrajBlock
from nervex.worker.actor.state import from_state, to_state


class ColumnRollout:
    """
    Overview:
        Steps of N envs as columns of shape (window, N, ...), written in place. A window is ``overlap`` steps that the
        previous window ended with, and then new steps; when it is full, ``cut`` is called with a Batch (T, N), and the
        memory is handed over, never written again. While all envs stand at the same step, one write serves all of
        them; where they do not (asynchronous envs, a dropped episode), rows are written and cut env by env.
    Arguments:
        - cut (:obj:`Callable`): turns a Batch (T, N) or (T, ) into training samples, see ``Policy._get_train_sample``
        - env_num (:obj:`int`): number of envs
        - window (:obj:`int | None`): new steps of a window; None cuts at episode ends only
        - overlap (:obj:`int`): steps at the end of a window that come again in the next one
    """

    def __init__(self, cut: Callable[[Batch], Batch], env_num: int, window: int | None, overlap: int = 0) -> None:
        self._cut = cut
        self._env_num = env_num
        self._whole = window is None
        self._overlap = 0 if window is None else overlap
        self._capacity = 64 if window is None else window + overlap
        self._columns: dict[str, Any] | None = None
        self._position = np.zeros(env_num, dtype=np.int64)  # next row to write, per env
        self._episode_start = np.zeros(env_num, dtype=np.int64)  # first row of the running episode, per env
        self._step = 0  # next row while all envs stand at the same one
        self._uniform = not self._whole

    def add(self, ids: np.ndarray, all_envs: bool, columns: dict[str, Any], done: np.ndarray | None) -> list[Batch]:
        """
        Overview:
            Write one step of the envs ``ids``; answers the training samples of every window that became full.
        Arguments:
            - all_envs (:obj:`bool`): ids are all envs in order, so that whole rows can be written
            - columns (:obj:`dict[str, Any]`): n rows a column: arrays, or nested dicts of them
            - done (:obj:`np.ndarray | None`): which of these envs ended their episode with this step; None: none
        """
        if all_envs and self._uniform and self._capacity == 1:
            return [self._cut(TrajBlock.cut(_nested(_own_window(columns)), 0))]
        if self._columns is None:
            self._columns = _like(columns, self._capacity, self._env_num)
        if all_envs and self._uniform:
            _write(self._columns, self._step, columns)
            self._step += 1
            if done is not None:
                self._episode_start[done] = self._step
            return [self._cut_all()] if self._step == self._capacity else []
        self._leave_uniform()
        if self._whole and self._position[ids].max() >= self._capacity:
            self._grow()
        at = self._position[ids]
        _write(self._columns, (at, ids), columns)
        self._position[ids] = at + 1
        ended = ids[:0] if done is None else ids[done]
        self._episode_start[ended] = self._position[ended]
        if self._whole:
            return [self._cut_one(int(env)) for env in ended]
        return self._cut_each(all_envs) if self._position.max() >= self._capacity else []

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
        self._columns, self._capacity = from_state(state['columns']), state['capacity']
        self._position, self._episode_start = from_state(state['position']), from_state(state['episode_start'])
        self._step, self._uniform = state['step'], state['uniform']

    def _leave_uniform(self) -> None:
        if self._uniform:
            self._position[:] = self._step
            self._uniform = False

    def _cut_all(self) -> Batch:
        block, keep = self._columns, self._overlap
        moved = self._capacity - keep
        self._columns = _like_block(block, self._capacity)
        if keep:
            _write(self._columns, slice(0, keep), _take(block, slice(moved, None)))
        self._step = keep
        self._episode_start = np.maximum(self._episode_start - moved, 0)
        return self._cut(TrajBlock.cut(_nested(block), keep))

    def _cut_each(self, synchronous: bool) -> list[Batch]:
        full = range(self._env_num) if synchronous else np.flatnonzero(self._position >= self._capacity)
        samples = [self._cut_one(int(env)) for env in full if self._position[env] > self._overlap]
        if synchronous and (self._position == self._position[0]).all():
            self._step, self._uniform = int(self._position[0]), True
        return samples

    def _cut_one(self, env: int) -> Batch:
        end, keep = int(self._position[env]), self._overlap
        block = _take(self._columns, (slice(0, end), env), copy=True)
        if keep:
            _write(self._columns, (slice(0, keep), env), _take(block, slice(end - keep, None)))
        self._position[env] = keep
        self._episode_start[env] = max(int(self._episode_start[env]) - (end - keep), 0)
        return self._cut(TrajBlock.cut(_nested(block), keep))

    def _grow(self) -> None:
        larger = _like_block(self._columns, self._capacity * 2)
        _write(larger, slice(0, self._capacity), self._columns)
        self._columns, self._capacity = larger, self._capacity * 2


def _like(columns: dict[str, Any], capacity: int, env_num: int) -> dict[str, Any]:
    return {
        k: _like(v, capacity, env_num)
        if isinstance(v, dict)
        else np.empty((capacity, env_num, *v.shape[1:]), dtype=v.dtype)
        for k, v in columns.items()
    }


def _own_window(columns: dict[str, Any]) -> dict[str, Any]:
    """One step as a window of one, on memory of its own."""
    return {k: _own_window(v) if isinstance(v, dict) else v.copy()[None] for k, v in columns.items()}


def _like_block(block: dict[str, Any], capacity: int) -> dict[str, Any]:
    return {
        k: _like_block(v, capacity) if isinstance(v, dict) else np.empty((capacity, *v.shape[1:]), dtype=v.dtype)
        for k, v in block.items()
    }


def _nested(columns: dict[str, Any]) -> dict[str, Any]:
    return {k: Batch.of(_nested(v)) if isinstance(v, dict) else v for k, v in columns.items()}


def _write(block: dict[str, Any], index: Any, columns: dict[str, Any]) -> None:
    for key, value in columns.items():
        if isinstance(value, dict):
            _write(block[key], index, value)
        else:
            block[key][index] = value


def _take(block: dict[str, Any], index: Any, copy: bool = False) -> dict[str, Any]:
    return {
        k: _take(v, index, copy) if isinstance(v, dict) else (v[index].copy() if copy else v[index])
        for k, v in block.items()
    }


class RowRollout:
    """
    Overview:
        The documented form for policies whose ``_get_train_sample`` takes rows: one deque of transitions an env, handed
        to the policy when the episode ends or ``traj_len`` rows are there. The policy pops what it used; rows that it
        leaves (for n-step overlap) stay until the episode ends. A policy that pops nothing has used everything.
    """

    def __init__(self, get_train_sample: Callable[[deque], list], env_num: int, traj_len: float) -> None:
        self._get_train_sample = get_train_sample
        self._traj_len = traj_len
        self._cache: list[deque] = [deque() for _ in range(env_num)]

    def add(self, env_id: int, transition: dict, done: bool) -> list[dict]:
        """Append one transition; answers the training samples that became ready."""
        cache = self._cache[env_id]
        cache.append(transition)
        samples: list[dict] = []
        if done:
            while cache and self._use(cache, samples):
                pass
            cache.clear()
        elif len(cache) >= self._traj_len:
            self._use(cache, samples)
        return samples

    def _use(self, cache: deque, samples: list[dict]) -> bool:
        before = len(cache)
        got = self._get_train_sample(cache)
        samples.extend(got or [])
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
