"""What an actor sends: a small header, and a block of columns; and who has been counted already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from nervex.data import Batch
from nervex.parallel.following import fold, unfold


@dataclass
class Header:
    """What the coordinator knows of a block. ``(actor, incarnation, seq)`` is never given twice."""

    actor: int
    incarnation: int
    seq: int
    task_id: str
    version: int  # of the weights at the block's first step
    last_version: int  # and at its last; they are equal where weights change between blocks only
    train_iter: int  # the learner's update that made these weights
    rows: int  # training samples in the block
    steps: int  # env steps that it took
    seconds: float
    nbytes: int
    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    statistics: dict[str, Any] | None = None  # of the observations that were scaled, since the last block

    @property
    def key(self) -> tuple[int, int, int]:
        return self.actor, self.incarnation, self.seq


class Ledger:
    """
    Overview:
        Which blocks have been taken. Of each (actor, incarnation) it holds the number up to which all are taken, and
        those beyond, so that it stays small.
    """

    def __init__(self) -> None:
        self._next: dict[tuple[int, int], int] = {}
        self._beyond: dict[tuple[int, int], set[int]] = {}

    def take(self, actor: int, incarnation: int, seq: int) -> bool:
        """Note a block; False if it was taken before."""
        who = actor, incarnation
        following, beyond = self._next.get(who, 0), self._beyond.setdefault(who, set())
        if seq < following or seq in beyond:
            return False
        beyond.add(seq)
        while following in beyond:
            beyond.remove(following)
            following += 1
        self._next[who] = following
        return True

    def state_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return {
            'taken': [[*who, following, sorted(self._beyond.get(who, ()))] for who, following in self._next.items()]
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._next = {(actor, incarnation): n for actor, incarnation, n, _ in state['taken']}
        self._beyond = {(actor, incarnation): set(seqs) for actor, incarnation, _, seqs in state['taken']}


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
    columns = _arrays(batch)
    if 'obs' in columns and 'next_obs' in columns:
        columns['next_obs'] = fold(columns['obs'], columns['next_obs'], lags)
    return columns, len(batch) if columns else 0, _nbytes(columns)


def unpack_block(columns: dict[str, Any]) -> Batch:
    """The Batch again; its arrays may be read-only, on shared memory."""
    if 'next_obs' in columns:
        columns = {**columns, 'next_obs': unfold(columns.get('obs'), columns['next_obs'])}
    return _batch(columns)


def _batch(columns: dict[str, Any]) -> Batch:
    return Batch.of({k: _batch(v) if isinstance(v, dict) else v for k, v in columns.items()})


def _arrays(batch: Batch) -> dict[str, Any]:
    return {k: _arrays(v) if isinstance(v, (Batch, dict)) else _array(v) for k, v in batch.items()}


def _array(column: Any) -> Any:
    column = column.detach().cpu().numpy() if isinstance(column, torch.Tensor) else np.asarray(column)
    return column if column.dtype == object else np.ascontiguousarray(column)


def _nbytes(columns: dict[str, Any]) -> int:
    return sum(_nbytes(v) if isinstance(v, dict) else v.nbytes for v in columns.values())
