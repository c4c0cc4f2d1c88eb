"""The on-policy kind of buffer: rows of one round, given out in shuffled minibatches, then forgotten."""
from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from nervex.data.batch import Batch
from nervex.data.buffer_log import BufferLog
from nervex.data.columns import MISFITS, ColumnStore, rows_of
from nervex.data.sampled import Sampled, UniqueIds

logger = logging.getLogger(__name__)


class OnPolicyKind:
    """
    Overview:
        Keeps everything that is pushed in one round (it grows as needed, nothing is dropped). ``batches`` gives epochs
        of shuffled minibatches without replacement, as slices of one permuted copy, and empties the buffer at its end.
    """

    def __init__(self, name: str, cfg: Any, seed: Any = None) -> None:
        self.name = name
        self.start_size = cfg.replay_start_size
        self.min_sample_ratio = cfg.min_sample_ratio
        self.drop_last = cfg.drop_last
        self._rng = np.random.default_rng(seed)
        self._store: ColumnStore | None = None
        self._size = 0
        self._total = 0
        self._outputs: list = []
        self.pushed = self.sampled = 0  # rows, over the whole life
        self.log: BufferLog | None = None

    @property
    def count(self) -> int:
        """Rows that can be sampled."""
        return self._size

    def plan(self, columns: dict) -> int:
        """Nothing is reserved: the buffer grows with its data."""
        return 0

    def quick_push(self, columns: dict) -> bool:
        """Append rows if they fit without growing or converting; False (then ``push`` must do it) if not."""
        try:
            n = self._store.fast_block(columns, self._size) if self._store is not None else 0
        except MISFITS:
            return False
        self._size += n
        self._total += n
        self.pushed += n
        return bool(n)

    def quick_row(self, row: dict) -> bool:
        """The same for one row, given without a leading axis."""
        try:
            n = self._store.fast_row(row, self._size) if self._size < self._room else 0
        except MISFITS:
            return False
        self._size += n
        self._total += n
        self.pushed += n
        return bool(n)

    @property
    def _room(self) -> int:
        return 0 if self._store is None else self._store.capacity

    def push(self, columns: dict) -> None:
        """Append rows."""
        n = rows_of(columns)
        if self._store is None or self._size + n > self._store.capacity:
            self._grow(self._size + n)
        if 'priority' in columns:
            columns = {name: column for name, column in columns.items() if name != 'priority'}
        self._store.write(columns, self._size)
        self._size += n
        self._total += n
        self.pushed += n

    def _grow(self, rows: int) -> None:
        old = self._store
        exact = old is None or not self._size
        self._store = ColumnStore(rows if exact else max(rows, 2 * self._size), f"buffer '{self.name}'")
        if old is not None and self._size:
            self._store.write(old.gather(np.arange(self._size)), 0)

    def ready(self, batch_size: int, cur_learner_iter: int = 0) -> bool:
        """Whether ``batch_size`` rows may be sampled."""
        return self._size >= max(batch_size * self.min_sample_ratio, self.start_size, 1)

    def sample(self, batch_size: int, cur_learner_iter: int = 0, reuse: bool = False) -> Sampled | None:
        """Rows drawn without replacement; the buffer keeps them. None when there is not enough data."""
        if not self.ready(batch_size):
            return None
        slots = self._rng.choice(self._size, batch_size, replace=batch_size > self._size)
        return self._sampled(self._store.gather(slots), slots, cur_learner_iter)

    def _sampled(self, columns: dict, slots: np.ndarray, cur_learner_iter: int) -> Sampled:
        first = self._total - self._size
        self.sampled += len(slots)
        sample = Sampled.drawn(columns, (self._describe, columns, slots, first, cur_learner_iter))
        if self.log is not None:
            self.log.sampled(sample)
        return sample

    def _describe(self, columns: dict, slots: np.ndarray, first: int, cur_learner_iter: int) -> dict[str, Any]:
        """The additional columns of a sample."""
        n, born = len(slots), columns.get('collect_iter')
        return {
            'IS': np.ones(n, dtype=np.float32),
            'priority': np.ones(n),
            'replay_unique_id': UniqueIds.of(slots + first, self.name),
            'replay_buffer_idx': slots,
            'use': np.ones(n, dtype=np.int64),
            'staleness': np.zeros(n, np.int64) if born is None else cur_learner_iter - np.asarray(born).reshape(-1),
        }

    def batches(self, batch_size: int, count: int, cur_learner_iter: int = 0) -> Iterator[Sampled]:
        """
        Overview:
            ``count`` epochs of minibatches; the last one of an epoch may be short, unless ``drop_last``. Then the
            buffer is empty, also when the caller stops early.
        """
        size = self._size
        try:
            if not size:
                logger.warning("buffer '%s': no rows to learn from", self.name)
                return
            if self.drop_last and size < batch_size:
                logger.warning("buffer '%s': %d rows are less than one minibatch of %d", self.name, size, batch_size)
            for _ in range(count):
                order = self._rng.permutation(size)
                epoch = Batch.of(self._permuted(order))
                end = size - size % batch_size if self.drop_last else size
                for start in range(0, end, batch_size):
                    rows = slice(start, start + batch_size)
                    yield self._sampled(epoch[rows]._columns, order[rows], cur_learner_iter)
                    cur_learner_iter += 1
        finally:
            self.clear()

    def _permuted(self, order: np.ndarray) -> dict:
        """The rows in this order, in one of two alternating outputs."""
        key = (len(order), id(self._store))
        if not self._outputs or self._outputs[0][-1] != key:
            self._outputs = [(*self._store.outputs(len(order))[:2], key) for _ in range(2)]
        self._outputs.reverse()
        flat, view, _ = self._outputs[0]
        if not self._store.gather_into(order, flat):  # a column's dtype has changed
            self._outputs = []
            return self._store.gather(order)
        return view

    def update(self, info: dict) -> None:
        """On-policy data has no priorities: nothing to do."""

    def used_data(self) -> None:
        """Rows are not tracked here."""

    def clear(self) -> None:
        """Forget all rows."""
        self._size = 0

    def state_dict(self) -> dict[str, Any]:
        """Contents, counters and generator."""
        store = self._store.state_dict(slice(0, self._size)) if self._store is not None else {'columns': []}
        return {'kind': 'on_policy', 'total': self._total, 'size': self._size, 'store': store,
                'generator': self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._total, self._size = state['total'], state['size']
        self._rng.bit_generator.state = state['generator']
        self._store = ColumnStore(max(self._size, 1), f"buffer '{self.name}'") if state['store']['columns'] else None
        if self._store is not None:
            self._store.load_state_dict(state['store'], slice(0, self._size))
        self._outputs = []
