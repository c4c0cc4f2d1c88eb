"""How often the rows of a ring were used, how old they are, and which were removed before their time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

_ONE = np.int32(1)


class RowLife:
    """
    Overview:
        Counts the uses of every slot and knows which slots still hold a row. Slots are numbered as in the ring; the
        first ``size`` ones are in use.
    Arguments:
        - max_reuse (:obj:`float`): uses after which a row is removed
    """

    def __init__(self, capacity: int, max_reuse: float = math.inf) -> None:
        self.max_reuse, self._capacity = max_reuse, capacity
        self.removed = 0
        self._uses = np.zeros(0, dtype=np.int32)  # reserved by allocate()
        self._known = 0  # rows from this number on have not been looked at yet
        self._alive: np.ndarray | None = None  # made with the first removal
        self._alive_slots: np.ndarray | None = None  # cache for draws
        self._bound = 0  # no row has been used more often than this

    @property
    def allocated(self) -> bool:
        """Whether there has been a first row."""
        return bool(len(self._uses))

    def allocate(self) -> None:
        """Reserve the counters: there is a first row."""
        self._uses = np.zeros(self._capacity, dtype=np.int32)

    def push(self, start: int, n: int) -> None:
        """New rows are in these slots (which may run over the end)."""
        if self._alive is not None:
            end = min(start + n, self._capacity)
            self.removed -= int(np.count_nonzero(~self._alive[start:end]))
            self._alive[start:end] = True
            self._alive_slots = None
            if start + n > end:
                self.push(0, start + n - end)

    def uses(self, next_number: int) -> np.ndarray:
        """
        Overview:
            Uses of every slot. Counters of rows that have come since the last call are set to 0 here and not at every
            push.
        Arguments:
            - next_number (:obj:`int`): number of the next row; row k is in slot k modulo capacity
        """
        new = next_number - self._known
        if new:
            start = self._known % self._capacity
            self._uses[start : start + new] = 0
            if start + new > self._capacity:
                self._uses[: start + new - self._capacity] = 0
            self._known = next_number
        return self._uses

    def stratified(self, fractions: np.ndarray, size: int) -> np.ndarray:
        """A slot of every one of ``n`` equal parts of the stored rows: no row comes much more often than another."""
        n = len(fractions)
        rows = size - self.removed
        ranks = ((np.arange(n) + fractions) * (rows / n)).astype(np.int64)
        np.minimum(ranks, rows - 1, out=ranks)
        return ranks if not self.removed else self.alive_slots(size)[ranks]

    def alive_slots(self, size: int) -> np.ndarray:
        """The slots that hold a row."""
        if self._alive is None:
            return np.arange(size)
        if self._alive_slots is None:
            self._alive_slots = np.flatnonzero(self._alive[:size])
        return self._alive_slots

    def use(self, slots: np.ndarray, next_number: int) -> np.ndarray | None:
        """These rows were sampled; gives the slots of those that may not be sampled again, if there are any."""
        np.add.at(self.uses(next_number), slots, _ONE)  # of the same dtype: ten times faster than a Python int
        return self.worn(slots) if self.max_reuse != math.inf else None

    def worn(self, slots: np.ndarray) -> np.ndarray | None:
        """Of the rows that were just counted, the slots of those that may not be sampled again, if there are any."""
        uses = self._uses
        rows = max(self._capacity - self.removed, 1)
        self._bound += 1 + -(-len(slots) // rows) if len(slots) > 1 else 1
        if self._bound < self.max_reuse:
            return None
        self._bound = int(uses.max())
        worn = np.unique(slots[uses[slots] >= self.max_reuse])
        return worn if len(worn) else None

    def remove(self, slots: np.ndarray) -> np.ndarray:
        """Take rows out; gives the slots that did hold one."""
        if self._alive is None:
            self._alive = np.ones(self._capacity, dtype=bool)
        slots = slots[self._alive[slots]]
        self._alive[slots] = False
        self._uses[slots] = 0
        self.removed += len(slots)
        self._alive_slots = None
        return slots

    def clear(self, next_number: int) -> None:
        """Nothing is stored any more; rows go on with this number."""
        self._uses[:] = 0
        self._known = next_number
        self.removed, self._alive, self._alive_slots, self._bound = 0, None, None, 0

    def state_dict(self, next_number: int) -> dict[str, Any]:
        """Use counts and removed slots."""
        alive = None if self._alive is None else torch.from_numpy(self._alive.copy())
        return {
            'uses': torch.from_numpy(self.uses(next_number).copy()),
            'alive': alive,
            'bound': self._bound,
            'known': self._known,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self.clear(state['known'])
        self._uses = state['uses'].numpy().copy()
        self._bound = state['bound']
        if state['alive'] is not None:
            self._alive = state['alive'].numpy().copy()
            self.removed = int(np.count_nonzero(~self._alive))
