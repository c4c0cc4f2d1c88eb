"""Where an actor keeps the steps of the running episodes until they become training samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.data import Batch
from nervex.data.names import missing_column
from nervex.policy.batched import name_of
from nervex.policy.traj_block import TrajBlock
from nervex.utils import tree
from nervex.utils.part_state import HasState
from nervex.worker.actor.rows import as_array, as_columns, check_names


class ColumnRollout(HasState):
    """
    Overview:
        Steps of N envs as columns of shape (window, N, ...), written in place. A window is ``overlap`` steps that the
        previous window ended with, and then new steps; when it is full, ``cut`` is called with a Batch (T, N), and the
        memory is handed over, never written again. While all envs stand at the same step, one write serves all of
        them; where they do not (asynchronous envs, a dropped episode), rows are written and cut env by env.
    Arguments:
        - transition (:obj:`Callable`): makes the columns of a step, see ``Policy._process_transition``
        - cut (:obj:`Callable`): turns a Batch (T, N) or (T, ) into training samples, see ``Policy._get_train_sample``
        - env_num (:obj:`int`): number of envs
        - window (:obj:`int | None`): new steps of a window; None cuts at episode ends only
        - overlap (:obj:`int`): steps at the end of a window that come again in the next one
        - together (:obj:`bool`): the envs step together: who is behind after a dropped episode is cut with the others,
          so that all stand at the same step again. False: everyone's window becomes full in its own time
    Interfaces:
        take, add, drop, state_dict, load_state_dict
    """

    resume_parts = ('_columns', '_capacity', '_position', '_episode_start', '_step', '_uniform')

    def __init__(
        self,
        transition: Any,
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
        if type(columns) is not dict:
            columns = as_columns(columns, self._transition)
        if 'truncated' not in columns:
            columns['truncated'] = step.truncated
        return self.add(step.env_id, step.whole, columns, step.done if ends else None)

    def add(self, ids: np.ndarray, all_envs: bool, columns: dict[str, Any], done: np.ndarray | None) -> list[Batch]:
        """
        Overview:
            Write one step of the envs ``ids``; answers the training samples of every window that became full.
        Arguments:
            - all_envs (:obj:`bool`): ids are all envs in order, so that whole rows can be written
            - columns (:obj:`dict[str, Any]`): n rows a column
            - done (:obj:`np.ndarray | None`): which of these envs ended their episode with this step; None: none
        """
        if all_envs and self._uniform:
            self._write(self._step, columns)
            self._step += 1
            if done is not None:
                self._episode_start[done] = self._step
            return [self._cut_all()] if self._step == self._capacity else []
        self._leave_uniform()
        if self._whole and self._columns and self._position[ids].max() >= self._capacity:
            self._columns = tree.map(lambda x: np.concatenate([x, np.empty_like(x)]), self._columns)
            self._capacity *= 2
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
        if columns.keys() != blocks.keys():
            blocks = self._begin(columns)
        for name, value in columns.items():
            block = blocks[name]
            if type(value) is np.ndarray and value.dtype is block.dtype:
                block[at] = value
            else:
                self._write_other(name, at, as_array(value))

    def _write_other(self, name: str, at: Any, value: Any) -> None:
        """A nested column, or one whose kind of numbers has changed: rewards that were whole numbers until now."""

        def fitting(block: np.ndarray, part: np.ndarray) -> np.ndarray:
            dtype = np.result_type(block, part) if block.dtype != object else block.dtype
            block = block if dtype == block.dtype else block.astype(dtype)
            block[at] = part
            return block

        self._columns[name] = tree.map(fitting, self._columns[name], value)

    def _begin(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Make room for columns that are seen for the first time."""
        if self._columns:
            odd = sorted(set(columns) ^ set(self._columns))
            raise ValueError(
                f'_process_transition returned the columns {", ".join(columns)} after steps with '
                f'{", ".join(self._columns)}: {odd[0]!r} must be there always or never'
            )
        check_names(columns)
        shape, found = (self._capacity, self._env_num), {name: as_array(value) for name, value in columns.items()}
        self._columns = tree.map(lambda x: np.empty((*shape, *x.shape[1:]), dtype=x.dtype), found)
        return self._columns

    def drop(self, env_id: int) -> None:
        """Forget the steps of the unfinished episode of one env."""
        self._leave_uniform()
        self._position[env_id] = self._episode_start[env_id]

    def _leave_uniform(self) -> None:
        if self._uniform:
            self._position[:] = self._step
            self._uniform = False

    def _cut_all(self) -> Batch:
        block, keep = self._columns, self._overlap
        moved = self._capacity - keep
        fresh, array = np.empty_like, np.ndarray
        self._columns = {k: fresh(v) if type(v) is array else tree.map(fresh, v) for k, v in block.items()}
        if keep:
            tree.write(self._columns, slice(0, keep), tree.index(block, slice(moved, None)))
        self._step = keep
        np.maximum(self._episode_start - moved, 0, out=self._episode_start)
        return self._samples(block)

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
        return self._samples(block)

    def _samples(self, columns: dict[str, Any]) -> Batch:
        """The training samples of a window, as the policy cuts them."""
        nested = {k: v if type(v) is np.ndarray else Batch(v) for k, v in columns.items()}
        try:
            samples = self._cut(TrajBlock.cut(nested, self._overlap))
        except KeyError as error:
            remedy = '_process_transition must return it'
            raise missing_column(error, columns, name_of(self._cut), remedy) from error
        if not isinstance(samples, Batch):
            raise TypeError(
                f'{name_of(self._cut)} returned a {type(samples).__name__} for a Batch of steps; marked with @batched, '
                'it must return a Batch of training samples'
            )
        return samples
