"""Columns on their way between env manager and policy: NumPy and torch on the same memory, blocks and rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from nervex.data import Batch
from nervex.data.names import FRAMEWORK_COLUMNS
from nervex.envs import BaseEnvTimestep
from nervex.policy.batched import is_batched

_FROM_POLICY = {'priority', 'truncated'}
_REFUSED = frozenset(FRAMEWORK_COLUMNS) - _FROM_POLICY


class ObsBlock(NamedTuple):
    """Observations of the ready envs: row k belongs to ``env_id[k]``."""

    env_id: np.ndarray
    obs: Any


def tensor_block(obs: Any) -> Any:
    """NumPy columns -> tensors on the same memory."""
    if isinstance(obs, dict):
        return {key: tensor_block(value) for key, value in obs.items()}
    return torch.from_numpy(obs)


class SharedTensors:
    """
    Overview:
        Tensors over the arrays that an env manager shows in turn. They are made once, and the way back from a tensor
        to its array is known, so that a column that a policy only passes on costs nothing.
    Interfaces:
        tensor, array
    """

    _MOST = 64  # managers that make new arrays at every step do not fill the memory

    def __init__(self) -> None:
        self._pairs: dict[int, tuple[np.ndarray, torch.Tensor]] = {}  # by the id of either; both are kept alive

    def tensor(self, value: Any) -> Any:
        """An array, or the arrays in a dict, as tensors on the same memory."""
        pair = self._pairs.get(id(value))
        if pair is not None:
            return pair[1]
        if isinstance(value, dict):
            return {key: self.tensor(item) for key, item in value.items()}
        if len(self._pairs) >= self._MOST:
            self._pairs.clear()
        pair = value, torch.from_numpy(value)
        self._pairs[id(value)] = self._pairs[id(pair[1])] = pair
        return pair[1]

    def array(self, value: Any) -> Any:
        """What ``as_array`` answers."""
        pair = self._pairs.get(id(value))
        return as_array(value) if pair is None else pair[0]


class BlockTimestep:
    """
    Overview:
        One step of n envs as ``_process_transition`` takes it: ``obs``, ``reward``, ``done``, ``truncated`` as tensors
        on the env manager's memory, ``info`` as a list; each is made when it is asked for.
    """

    __slots__ = ('_step', '_tensor')

    def __init__(self, step: Any, tensors: SharedTensors | None = None) -> None:
        self._step, self._tensor = step, tensor_block if tensors is None else tensors.tensor

    @property
    def env_id(self) -> np.ndarray:
        return self._step.env_id

    @property
    def obs(self) -> Any:
        return self._tensor(self._step.obs)

    @property
    def reward(self) -> torch.Tensor:
        return self._tensor(self._step.reward)

    @property
    def done(self) -> torch.Tensor:
        return self._tensor(self._step.done)

    @property
    def truncated(self) -> torch.Tensor:
        return self._tensor(self._step.truncated)

    @property
    def info(self) -> list[dict]:
        return self._step.info

    def row(self, k: int) -> BaseEnvTimestep:
        """The documented form of one env's step; tensors of its own."""
        reward = torch.from_numpy(np.array(self._step.reward[k], ndmin=1))
        return BaseEnvTimestep(row_of(self.obs, k), reward, bool(self._step.done[k]), dict(self._step.info[k]))


def policy_forward(mode: Any, ids: np.ndarray, obs: Any, tensors: SharedTensors | None = None) -> dict[str, Any]:
    """
    Overview:
        Preprocess, forward and postprocess of a collect or eval mode, in columns where the hooks take columns and in
        the documented ``{env_id: row}`` form where they do not.
    Arguments:
        - tensors (:obj:`SharedTensors | None`): of the env manager that made ``obs``
    Returns:
        - output (:obj:`dict[str, Any]`): columns on the CPU, one row an env, in the order of ``ids``
    """
    block = tensor_block(obs) if tensors is None else tensors.tensor(obs)
    if is_batched(mode.data_preprocess):
        data_id, data = mode.data_preprocess(ObsBlock(ids, block))
    else:
        data_id, data = mode.data_preprocess({int(i): row_of(block, k) for k, i in enumerate(ids)})
    output = mode.forward(data_id, data)
    if is_batched(mode.data_postprocess):
        return mode.data_postprocess(data_id, output)
    rows = mode.data_postprocess(data_id, output)
    return Batch.from_rows([rows[int(i)] for i in ids]).to_dict()


def row_of(block: Any, k: int) -> Any:
    return {key: row_of(value, k) for key, value in block.items()} if isinstance(block, dict) else block[k]


def own(value: Any) -> Any:
    """The same value on memory of its own: rows outlive the env manager's blocks."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    return {key: own(item) for key, item in value.items()} if isinstance(value, dict) else value


def as_array(value: Any) -> Any:
    """A column as NumPy (no copy on the CPU); nested dicts stay dicts; several action heads become the last axis."""
    if isinstance(value, torch.Tensor):
        return value.numpy(force=True) if value.requires_grad or value.is_cuda else value.numpy()
    if isinstance(value, (dict, Batch)):
        return {key: as_array(value[key]) for key in value.keys()}
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor) and value[0].dim():
        return np.stack([as_array(head) for head in value], axis=-1)
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def copy_row(obs: Any, k: int) -> Any:
    return {key: copy_row(value, k) for key, value in obs.items()} if isinstance(obs, dict) else obs[k].copy()


def pick(value: Any, k: int, name: str) -> Any:
    """What a policy said for row k: of a column, of several action heads, or of a list with one state an env."""
    if isinstance(value, dict):
        return {key: pick(item, k, key) for key, item in value.items()}
    if name != 'prev_state' and isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
        return [item[k] for item in value]
    return value[k]


def stack_rows(rows: list[Any]) -> Any:
    first = rows[0]
    if isinstance(first, dict):
        return {key: stack_rows([row[key] for row in rows]) for key in first}
    if isinstance(first, torch.Tensor):
        return torch.stack(rows)
    if isinstance(first, list):
        return [stack_rows([row[h] for row in rows]) for h in range(len(first))]
    return np.stack(rows)


def check_names(transition: dict) -> None:
    """Refuse a column that the framework itself adds."""
    if not _REFUSED.isdisjoint(transition):
        taken = sorted(_REFUSED.intersection(transition))
        raise ValueError(
            f'_process_transition returned the column {taken[0]!r}, a name that the framework '
            f'itself adds; rename it (taken names: {", ".join(sorted(_REFUSED))})'
        )


def stamped(samples: Batch, iter_count: int) -> Batch:
    """The same samples with the column ``collect_iter``."""
    stamp = np.empty(len(samples), dtype=np.int64)
    stamp.fill(iter_count)
    columns = dict(samples.items())
    columns['collect_iter'] = stamp
    return Batch.of(columns)
