"""What travels: blocks of samples with their headers, and weights; and which blocks have been taken."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from nervex.data import Batch
from nervex.utils import tree

_WORTH_BYTES = 256  # of a row: below, looking for it elsewhere costs more than sending it
_WORTH_SHARE = 0.5  # of the rows that must be found
_CHUNK_BYTES = 1 << 18  # compared at once: what is compared stays in the processor's cache
_NOT_IN_NUMPY = (torch.bfloat16,)


@dataclass
class Header:
    """What the coordinator knows of a block. ``(actor, incarnation, seq)`` is never given twice."""

    actor: int
    incarnation: int
    seq: int
    task_id: str
    version: int  # of the weights
    train_iter: int  # the learner's update that made these weights
    rows: int  # training samples in the block
    steps: int  # env steps that it took
    seconds: float
    nbytes: int
    returns: list[float] = field(default_factory=list)
    statistics: dict[str, Any] | None = None  # of the observations that were scaled, since the last block
    games: list[tuple[str, str]] = field(default_factory=list)  # that ended in a league: opponent and result
    met: list[str] = field(default_factory=list)  # whom its present games are against

    @property
    def key(self) -> tuple[int, int, int]:
        """Who made it, and which of theirs it is."""
        return self.actor, self.incarnation, self.seq


class Ledger:
    """
    Overview:
        Which blocks have been taken. Of each (actor, incarnation) it holds the number up to which all are taken, and
        those beyond, so that it stays small.
    """

    def __init__(self) -> None:
        self._taken: dict[tuple[int, int], tuple[int, set[int]]] = {}

    def take(self, actor: int, incarnation: int, seq: int) -> bool:
        """Note a block; False if it was taken before."""
        following, beyond = self._taken.get((actor, incarnation), (0, set()))
        if seq < following or seq in beyond:
            return False
        beyond.add(seq)
        while following in beyond:
            beyond.remove(following)
            following += 1
        self._taken[actor, incarnation] = following, beyond
        return True

    def state_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return {'taken': [[*who, following, sorted(beyond)] for who, (following, beyond) in self._taken.items()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._taken = {(actor, life): (following, set(beyond)) for actor, life, following, beyond in state['taken']}


# ---- blocks ----
def pack_block(data: Batch | list[dict], lags: Sequence[int] = ()) -> tuple[dict[str, Any], int, int]:
    """
    Overview:
        Training samples as plain nested dicts of arrays, which travel without being pickled.
    Arguments:
        - lags (:obj:`Sequence[int]`): see ``fold``: next observations that are observations of the block are left out
    Returns:
        - columns, rows, nbytes
    """
    batch = data if isinstance(data, Batch) else Batch.from_rows(data)
    columns = tree.map(_array, batch).to_dict()
    if 'obs' in columns and 'next_obs' in columns:
        columns['next_obs'] = fold(columns['obs'], columns['next_obs'], lags)
    return columns, len(batch) if columns else 0, tree.nbytes(columns)


def unpack_block(columns: dict[str, Any]) -> Batch:
    """The Batch again; its arrays may be read-only, on shared memory."""
    if 'next_obs' in columns:
        columns = {**columns, 'next_obs': unfold(columns.get('obs'), columns['next_obs'])}
    return Batch(columns)


def _array(column: Any) -> Any:
    column = column.detach().cpu().numpy() if isinstance(column, torch.Tensor) else np.asarray(column)
    return column if column.dtype == object else np.ascontiguousarray(column)


@dataclass
class Following:
    """
    Overview:
        A column of next observations as what it is made of. Row i is row ``i + lag`` of the observations, but for the
        rows ``apart`` (ends of episodes, the block's last steps), whose values lie in ``values``.
    """

    lag: int
    apart: np.ndarray
    values: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.apart.nbytes + self.values.nbytes

    def column(self, obs: np.ndarray) -> np.ndarray:
        """The column itself."""
        column = np.empty_like(obs)
        column[: len(obs) - self.lag] = obs[self.lag :]
        column[self.apart] = self.values
        return column


def fold(obs: Any, next_obs: Any, lags: Sequence[int]) -> Any:
    """
    Overview:
        The shorter form of ``next_obs``, or ``next_obs`` itself where there is none. Rows count as equal if all of
        their bytes are, so that ``unfold`` gives back exactly what was there.
    Arguments:
        - obs, next_obs (:obj:`Any`): arrays, or nested dicts of them; the first axis is the rows
        - lags (:obj:`Sequence[int]`): how many rows further the observation of the next step may be, best guess first
    """

    def folded(later: np.ndarray, now: np.ndarray) -> Any:
        if later.shape != now.shape or later.dtype != now.dtype or now.dtype == object:
            return later
        if len(now) < 2 or now[0].nbytes < _WORTH_BYTES:
            return later
        for lag in (lag for lag in lags if 0 < lag < len(now)):
            apart = np.ones(len(now), dtype=bool)
            apart[:-lag] = _differ(now[lag:], later[:-lag])
            rows = np.flatnonzero(apart)
            if len(rows) < _WORTH_SHARE * len(now):
                return Following(lag, rows, later[rows])
        return later

    try:
        return tree.map(folded, next_obs, obs)
    except tree.TreeError:  # they have different parts
        return next_obs


def unfold(obs: Any, next_obs: Any) -> Any:
    """What ``fold`` was given."""
    if not any(isinstance(leaf, Following) for leaf in tree.leaves(next_obs)):
        return next_obs
    return tree.map(lambda later, now: later.column(now) if isinstance(later, Following) else later, next_obs, obs)


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which rows of two contiguous columns are not equal, byte by byte."""
    nbytes = a[0].nbytes
    word = np.uint64 if nbytes % 8 == 0 else np.uint8
    a, b = (np.ascontiguousarray(x).reshape(len(x), -1).view(word) for x in (a, b))
    step = max(_CHUNK_BYTES // nbytes, 1)
    parts = [(a[k : k + step] != b[k : k + step]).any(1) for k in range(0, len(a), step)]
    return np.concatenate(parts)


# ---- weights ----
def pack_weights(state: dict[str, Any]) -> dict[str, Any]:
    """A state dict with arrays in place of tensors, on the same memory where that is the CPU's: nothing is copied."""

    def packed(value: Any) -> Any:
        value = value.detach().cpu() if isinstance(value, torch.Tensor) else value
        return value.numpy() if isinstance(value, torch.Tensor) and value.dtype not in _NOT_IN_NUMPY else value

    return tree.map(packed, state)


def load_weights(mode: Any, arrays: dict[str, Any]) -> None:
    """Copy what ``pack_weights`` gave into a collect or eval mode; the arrays may be read-only, on shared memory."""

    def tensor(value: Any) -> Any:
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', message='The given NumPy array is not writable')
        state = tree.map(tensor, arrays)
    mode.load_state_dict(state)
