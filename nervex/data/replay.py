"""The replay kind of buffer: a ring of rows, sampled at random."""
from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from nervex.data.batch import Batch
from nervex.data.columns import ColumnStore
from nervex.data.index_source import IndexSource
from nervex.data.sampled import Sampled, UniqueIds

logger = logging.getLogger(__name__)


class ReplayKind:
    """
    Overview:
        One named buffer of the manager: rows in a ring, the oldest make room for new ones; uniform samples with
        replacement. Not locked: the manager holds its lock around every call.
    """

    def __init__(self, name: str, cfg: Any, seed: Any = None) -> None:
        self.name = name
        self.capacity = cfg.meta_maxlen
        self.start_size = cfg.replay_start_size
        self.min_sample_ratio = cfg.min_sample_ratio
        self._store = ColumnStore(self.capacity, f"buffer '{name}'")
        self._source = IndexSource(seed)
        self._total = 0      # rows ever pushed
        self._size = 0       # rows that are stored
        self._head = 0       # slot of the next row
        self._outputs: dict[int, list] = {}

    @property
    def count(self) -> int:
        """Rows that can be sampled."""
        return self._size

    def push(self, columns: dict, n: int) -> None:
        """Append ``n`` rows; of more rows than fit, only the newest are kept."""
        if n > self.capacity:
            columns, n = Batch.of(columns)[n - self.capacity:]._columns, self.capacity
        head = self._head
        self._store.write(columns, head, n)
        head += n
        self._head = head if head < self.capacity else head - self.capacity
        self._total += n
        self._size = min(self._size + n, self.capacity)

    def ready(self, batch_size: int) -> bool:
        """Whether ``batch_size`` rows may be sampled."""
        return self._size >= max(batch_size * self.min_sample_ratio, self.start_size, 1)

    def sample(self, batch_size: int, cur_learner_iter: int = 0, reuse: bool = False) -> Sampled | None:
        """A sample, None when there is not enough data. ``reuse`` gives one of two alternating batches."""
        if not self.ready(batch_size):
            return None
        slots = self._source.draw(batch_size, self._size)
        if reuse:
            columns = self._gather_reused(slots)
        else:
            columns = self._store.gather(slots)
        total, slots = self._total, slots

        def describe() -> dict[str, Any]:
            return self._describe(slots.copy(), total, columns, cur_learner_iter)

        return Sampled.drawn(columns, describe)

    def _gather_reused(self, slots: np.ndarray) -> dict:
        pair = self._outputs.get(len(slots))
        if pair is None:
            pair = self._outputs[len(slots)] = [self._store.outputs(len(slots)), self._store.outputs(len(slots))]
        pair.reverse()
        flat, view = pair[0]
        self._store.gather_into(slots, flat)
        return dict(view)

    def _describe(self, slots: np.ndarray, total: int, columns: dict, cur_learner_iter: int) -> dict[str, Any]:
        newest = total - 1
        numbers = newest - (newest - slots) % self.capacity  # the newest number that lies in this slot
        found = {
            'IS': np.ones(len(slots), dtype=np.float32),
            'priority': np.ones(len(slots), dtype=np.float32),
            'replay_unique_id': UniqueIds.of(numbers, self.name),
            'replay_buffer_idx': slots,
            'use': np.ones(len(slots), dtype=np.int64),
        }
        born = columns.get('collect_iter')
        found['staleness'] = np.zeros(len(slots), np.int64) if born is None else cur_learner_iter - np.asarray(born)
        return found

    def batches(self, batch_size: int, count: int, cur_learner_iter: int = 0) -> Iterator[Sampled]:
        """Up to ``count`` samples; fewer, with a warning, when the data does not suffice."""
        for k in range(count):
            batch = self.sample(batch_size, cur_learner_iter + k, reuse=True)
            if batch is None:
                logger.warning("buffer '%s': only %d of %d samples of %d rows, %d rows are stored", self.name, k, count,
                               batch_size, self.count)
                return
            yield batch

    def update(self, info: dict) -> None:
        """Uniform sampling has no priorities: nothing to do."""

    def clear(self) -> None:
        """Forget all rows."""
        self._size = self._head = 0
        self._total = -(-self._total // self.capacity) * self.capacity  # a number's slot is number % capacity

    def state_dict(self) -> dict[str, Any]:
        """Contents, counters and generator."""
        return {'kind': 'replay', 'total': self._total, 'size': self._size, 'head': self._head,
                'source': self._source.state_dict(), 'store': self._store.state_dict(slice(0, self._used))}

    @property
    def _used(self) -> int:
        return self.capacity if self._size == self.capacity else self._size

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._total, self._size, self._head = state['total'], state['size'], state['head']
        self._source.load_state_dict(state['source'])
        self._store.load_state_dict(state['store'], slice(0, self._used))
        self._outputs.clear()
