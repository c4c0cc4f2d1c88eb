"""The on-policy kind of buffer: rows of one round, given out in shuffled minibatches, then forgotten."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from nervex.data.batch import Batch
from nervex.data.buffer_log import BufferLog
from nervex.data.columns import ColumnStore, rows_of
from nervex.data.sampled import Sampled, UniqueIds

logger = logging.getLogger(__name__)


class OnPolicyKind:
    """
    Overview:
        Keeps everything that is pushed in one round (it grows as needed, nothing is dropped). ``batches`` gives epochs
        of shuffled minibatches without replacement, as slices of one permuted copy, and empties the buffer at its end.
    Attributes:
        - plain, next_row: the manager writes what fits by itself, see ``ReplayKind``; rows are numbered in each round
    """

    capacity = 2**62  # it never begins anew at its first slot

    def __init__(self, name: str, cfg: Any, seed: Any = None) -> None:
        self.name = name
        self.start_size = cfg.replay_start_size
        self.min_sample_ratio = cfg.min_sample_ratio
        self.drop_last = cfg.drop_last
        self._rng = np.random.default_rng(seed)
        self.store: ColumnStore | None = None
        self.plain = False
        self.next_row = 0
        self._earlier = 0  # rows of earlier rounds
        self._outputs: list = []
        self.sampled = 0  # rows, over the whole life
        self.log: BufferLog | None = None

    @property
    def count(self) -> int:
        """Rows that can be sampled."""
        return self.next_row

    @property
    def pushed(self) -> int:
        """Rows that were ever pushed."""
        return self._earlier + self.next_row

    def plan(self, columns: dict) -> int:
        """Nothing is reserved: the buffer grows with its data."""
        return 0

    def push(self, columns: dict) -> None:
        """Append rows."""
        n = rows_of(columns)
        if self.store is None or self.next_row + n > self.store.capacity:
            self._grow(self.next_row + n)
        if 'priority' in columns:
            columns = {name: column for name, column in columns.items() if name != 'priority'}
        self.store.write(columns, self.next_row)
        self.next_row += n

    def _grow(self, rows: int) -> None:
        old = self.store
        exact = old is None or not self.next_row
        self.store = ColumnStore(rows if exact else max(rows, 2 * self.next_row), f"buffer '{self.name}'")
        self.plain = True
        if old is not None and self.next_row:
            self.store.write(old.gather(np.arange(self.next_row)), 0)

    def ready(self, batch_size: int, cur_learner_iter: int = 0) -> bool:
        """Whether ``batch_size`` rows may be sampled."""
        return self.next_row >= max(batch_size * self.min_sample_ratio, self.start_size, 1)

    def ready_for(self, batch_size: int, samples: int, cur_learner_iter: int = 0) -> bool:
        """The same: the rows of a round are used as often as the learner likes."""
        return self.ready(batch_size)

    def sample(self, batch_size: int, cur_learner_iter: int = 0, reuse: bool = False) -> Sampled | None:
        """Rows drawn without replacement; the buffer keeps them. None when there is not enough data."""
        if not self.ready(batch_size):
            return None
        slots = self._rng.choice(self.next_row, batch_size, replace=batch_size > self.next_row)
        return self._sampled(self.store.gather(slots), slots, cur_learner_iter)

    def _sampled(self, columns: dict, slots: np.ndarray, cur_learner_iter: int) -> Sampled:
        self.sampled += len(slots)
        sample = Sampled.drawn(columns, (self._describe, columns, slots, self._earlier, cur_learner_iter))
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
        size = self.next_row
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
        key = (len(order), id(self.store))
        if not self._outputs or self._outputs[0][-1] != key:
            self._outputs = [(*self.store.outputs(len(order))[:2], key) for _ in range(2)]
        self._outputs.reverse()
        flat, view, _ = self._outputs[0]
        if not self.store.gather_into(order, flat):  # a column's dtype has changed
            self._outputs = []
            return self.store.gather(order)
        return view

    def update(self, info: dict) -> None:
        """On-policy data has no priorities: nothing to do."""

    def used_data(self) -> None:
        """Rows are not tracked here."""

    def clear(self) -> None:
        """Forget all rows."""
        self._earlier += self.next_row
        self.next_row = 0

    def state_dict(self) -> dict[str, Any]:
        """Contents, counters and generator."""
        store = self.store.state_dict(slice(0, self.next_row)) if self.store is not None else {'columns': []}
        return {
            'kind': 'on_policy',
            'total': self.pushed,
            'size': self.next_row,
            'sampled': self.sampled,
            'store': store,
            'generator': self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self.next_row, self._earlier = state['size'], state['total'] - state['size']
        self.sampled = state['sampled']
        self._rng.bit_generator.state = state['generator']
        self.store = ColumnStore(max(self.next_row, 1), f"buffer '{self.name}'") if state['store']['columns'] else None
        self.plain = self.store is not None
        if self.store is not None:
            self.store.load_state_dict(state['store'], slice(0, self.next_row))
        self._outputs = []
