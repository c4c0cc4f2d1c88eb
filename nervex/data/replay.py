"""The replay kind of buffer: a ring of rows, sampled at random, uniformly or by priority."""
from __future__ import annotations

import copy
import logging
import math
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from nervex.data.batch import Batch
from nervex.data.buffer_log import BufferLog
from nervex.data.columns import MISFITS, ColumnStore, rows_of
from nervex.data.frames import FrameStore
from nervex.data.index_source import IndexSource
from nervex.data.priority import Priorities, checked_priorities
from nervex.data.row_life import RowLife
from nervex.data.sampled import Sampled, UniqueIds, integers, item_numbers

logger = logging.getLogger(__name__)
_PRIORITY_BYTES = 36  # of the sum tree and the priorities, per row


class ReplayKind:
    """
    Overview:
        One named buffer of the manager. Rows are numbered as they come (row k is called ``<name>_k``) and lie in slot
        k modulo capacity; the oldest make room for new ones. Not locked: the manager holds its lock around every call.
    """

    def __init__(self, name: str, cfg: Any, seed: Any = None) -> None:
        self.name, self._cfg, self.capacity = name, cfg, cfg.meta_maxlen
        self.start_size, self.min_sample_ratio = cfg.replay_start_size, cfg.min_sample_ratio
        self._life = RowLife(self.capacity, cfg.max_reuse)
        store = ColumnStore if cfg.frame_axis is None else partial(FrameStore, frame_axis=cfg.frame_axis)
        self._store = store(self.capacity, f"replay buffer '{name}'")
        self._store.overhead = 4 + (_PRIORITY_BYTES if cfg.use_priority else 0)
        self._source = IndexSource(seed)
        self._priorities: Priorities | None = None
        self._next = self._head = self._size = 0  # number of the next row, its slot, slots in use
        self._skipped = 0                         # numbers left out by clear()
        self.sampled = 0                          # rows, over the whole life
        self.log: BufferLog | None = None
        self._ages = cfg.max_staleness != math.inf
        self._oldest = math.inf                   # no row was collected in an earlier learner iteration
        self._plain = not (self._ages or self._store.expires)  # a push is nothing but writing
        self._outputs: dict[int, list] = {}
        self._used: deque[dict] = deque()

    @property
    def count(self) -> int:
        """Rows that can be sampled."""
        return self._size - self._life.removed

    @property
    def pushed(self) -> int:
        """Rows that were ever pushed."""
        return self._next - self._skipped

    def _prioritize(self) -> None:
        cfg = self._cfg
        self._priorities = Priorities(self.capacity, cfg.alpha, cfg.beta, cfg.anneal_step)
        if self._size:
            self._priorities.push(0, self._size)
            if self._life.removed:
                self._priorities.remove(np.setdiff1d(np.arange(self._size), self._life.alive_slots(self._size)))

    def plan(self, columns: dict) -> int:
        """Bytes that rows like these will need; BufferMemoryError if they cannot be had."""
        return self._store.plan({name: column for name, column in columns.items() if name != 'priority'})

    # ---- in
    def quick_push(self, columns: dict) -> bool:
        """Append rows if that is nothing but writing; False (then ``push`` must do it) if not."""
        if not self._plain:
            return False
        start = self._head
        try:
            n = self._store.fast_block(columns, start)
        except MISFITS:
            return False
        if not n:
            return False
        self._next += n
        end = start + n
        self._head = end if end < self.capacity else 0
        if self._size < end:
            self._size = end
        if self._priorities is not None:
            self._priorities.push(start, n)
        return True

    def quick_row(self, row: dict) -> bool:
        """The same for one row, given without a leading axis."""
        if not self._plain:
            return False
        start = self._head
        try:
            if not self._store.fast_row(row, start):
                return False
        except MISFITS:
            return False
        self._next += 1
        end = start + 1
        self._head = end if end < self.capacity else 0
        if self._size < end:
            self._size = end
        if self._priorities is not None:
            self._priorities.push(start, 1)
        return True

    def push(self, columns: dict) -> None:
        """Append rows; of more rows than fit, only the newest are kept."""
        n, capacity = rows_of(columns), self.capacity
        if not n:
            return
        if not self._life.allocated:
            self._begin(columns)
        columns, given = self._checked(columns, n)
        start = self._head
        try:
            self._store.write(columns, start)
        except Exception:  # what lay in these slots may be half overwritten: it is gone, as if it had worked
            slots = (np.arange(n) + start) % capacity
            self._remove(slots[slots < self._size])
            raise
        self._next += n
        self._head = (start + n) % capacity
        self._size = min(self._size + n, capacity)
        if n > capacity:  # the ring went round: only the last rows are there
            start, n, given = self._head, capacity, None if given is None else given[-capacity:]
        self._life.push(start, n)
        if self._priorities is not None:
            self._priorities.push(start, n, given)
        if self._store.expires and (expired := self._store.expired(self._size)) is not None:
            self._remove(expired)

    def _checked(self, columns: dict, n: int) -> tuple[dict, np.ndarray | None]:
        """Rows that have an age limit or come with priorities, which are taken out of the columns."""
        if self._ages:
            if (born := columns.get('collect_iter')) is None:
                raise KeyError(f"replay buffer '{self.name}': max_staleness needs 'collect_iter' in every row")
            self._oldest = min(self._oldest, float(np.asarray(born).min()))
        if 'priority' not in columns:
            return columns, None
        columns = dict(columns)
        given = columns.pop('priority')
        if self._cfg.use_priority is False:
            return columns, None
        priority = checked_priorities(given, lambda k: f'{self.name}_{self._next + k}', 'push_data', allow_none=True)
        if len(priority) != n:
            raise ValueError(f'push_data: {n} rows came with {len(priority)} priorities')
        if np.isnan(priority).all():
            return columns, None
        if self._priorities is None:
            self._prioritize()
        return columns, priority

    def _begin(self, columns: dict) -> None:
        """The first rows: see whether all of it will fit, and reserve what the bookkeeping needs."""
        self.plan(columns)
        self._life.allocate()
        if self._cfg.use_priority:
            self._prioritize()

    def _remove(self, slots: np.ndarray) -> None:
        if len(slots):
            self._plain = False
            slots = self._life.remove(slots)
            if self._priorities is not None:
                self._priorities.remove(slots)

    def _drop_stale(self, cur_learner_iter: int) -> None:
        if cur_learner_iter - self._oldest <= self._cfg.max_staleness or not self.count:
            return
        slots = self._life.alive_slots(self._size)
        born = self._store.arrays['collect_iter'][slots].reshape(-1).astype(np.float64)
        stale = cur_learner_iter - born > self._cfg.max_staleness
        self._oldest = float(born[~stale].min(initial=math.inf))
        self._remove(slots[stale])

    # ---- out
    def ready(self, batch_size: int, cur_learner_iter: int = 0) -> bool:
        """Whether ``batch_size`` rows may be sampled; rows that are too old are removed first."""
        if self._ages:
            self._drop_stale(cur_learner_iter)
        return self._size - self._life.removed >= max(batch_size * self.min_sample_ratio, self.start_size, 1)

    def sample(self, batch_size: int, cur_learner_iter: int = 0, reuse: bool = False) -> Sampled | None:
        """A sample, None when there is not enough data. ``reuse`` gives one of two alternating batches."""
        if not self.ready(batch_size, cur_learner_iter):
            return None
        if self._priorities is not None:
            slots, importance = self._priorities.draw(batch_size, self._source.rng)
        elif self._cfg.max_reuse != math.inf:
            slots = self._life.stratified(self._source.rng.random(batch_size), self._size)
        elif self._life.removed:
            alive = self._life.alive_slots(self._size)
            slots = alive[self._source.rng.integers(0, len(alive), batch_size)]
        else:
            slots = self._source.draw(batch_size, self._size)
        columns, tensors = self._gather(slots, reuse)
        self.sampled += batch_size
        worn = self._life.use(slots, self._next)
        if self._priorities is not None:
            columns['IS'] = importance
            columns['priority'] = self._priorities.values.take(slots)
            columns['replay_unique_id'] = UniqueIds.of(self._numbers(slots, self._next), self.name)
            columns['replay_buffer_idx'] = slots
        uses = None if worn is None else self._life.uses(self._next).take(slots)
        if worn is not None:
            self._retire(worn)
        sample = Sampled.drawn(columns, (self._describe, slots, columns, self._next, cur_learner_iter, uses), tensors)
        if self.log is not None:
            self.log.sampled(sample)
        return sample

    def _gather(self, slots: np.ndarray, reuse: bool) -> tuple[dict, dict | None]:
        if reuse and self._store.reusable:
            n = len(slots)
            if n not in self._outputs:
                if len(self._outputs) > 4:
                    self._outputs.clear()
                self._outputs[n] = [self._store.outputs(n), self._store.outputs(n)]
            pair = self._outputs[n]
            pair.reverse()
            flat, view, tensors = pair[0]
            if self._store.gather_into(slots, flat):
                return view.copy(), tensors
            del self._outputs[n]  # a column's dtype has changed
        columns = self._store.gather(slots)
        if self._cfg.deepcopy:
            for name, column in columns.items():
                if isinstance(column, np.ndarray) and column.dtype == object:
                    columns[name] = copy.deepcopy(column)
        return columns, None

    def _numbers(self, slots: np.ndarray, next_number: int) -> np.ndarray:
        """The numbers of the rows in these slots, when ``next_number`` was the next one."""
        newest = next_number - 1
        return newest - (newest - slots) % self.capacity

    def _describe(self, slots: np.ndarray, columns: dict, next_number: int, cur_learner_iter: int,
                  uses: np.ndarray | None) -> dict[str, Any]:
        """The additional columns of a sample."""
        n, born = len(slots), columns.get('collect_iter')
        return {
            'IS': np.ones(n, dtype=np.float32),
            'priority': np.ones(n),
            'replay_unique_id': UniqueIds.of(self._numbers(slots, next_number), self.name),
            'replay_buffer_idx': slots.copy(),
            'use': self._life.uses(self._next).take(slots) if uses is None else uses,
            'staleness': np.zeros(n, np.int64) if born is None else cur_learner_iter - np.asarray(born).reshape(-1),
        }

    def _retire(self, slots: np.ndarray) -> None:
        """Remove rows that have been used often enough."""
        if self._cfg.enable_track_used_data:
            self._used.extend(row.to_dict() for row in Batch.of(self._store.gather(slots)))
        self._remove(slots)

    def used_data(self) -> dict | None:
        """One of the rows that were removed for their number of uses, oldest first; None if there is none."""
        return self._used.popleft() if self._used else None

    def batches(self, batch_size: int, count: int, cur_learner_iter: int = 0) -> Iterator[Sampled]:
        """Up to ``count`` samples; fewer, with a warning, when the data does not suffice."""
        for k in range(count):
            batch = self.sample(batch_size, cur_learner_iter + k, reuse=True)
            if batch is None:
                logger.warning("replay buffer '%s': %d rows give only %d of %d samples of %d rows", self.name,
                               self.count, k, count, batch_size)
                return
            yield batch

    def update(self, info: Mapping) -> None:
        """New priorities for rows that are still there (one number per row: its id must fit its slot)."""
        if self._cfg.use_priority is False or not self._size:
            return
        numbers, slots = item_numbers(info['replay_unique_id'], self.name), integers(info['replay_buffer_idx'])
        priority = checked_priorities(info['priority'], lambda k: f'{self.name}_{numbers[k]}', 'update')
        if not len(priority) == len(numbers) == len(slots):
            raise ValueError(f'update: {len(priority)} priorities, {len(numbers)} replay_unique_id and {len(slots)} '
                             'replay_buffer_idx; there must be one of each per row')
        if self._priorities is None:
            self._prioritize()
        self._priorities.update_rows(numbers, slots, priority, self._next - self._size, self._next - 1)

    def clear(self) -> None:
        """Forget all rows. Numbers go on: an id is never given twice."""
        start = -(-self._next // self.capacity) * self.capacity  # the ring starts at slot 0 again
        self._skipped += start - self._next
        self._next, self._size, self._head, self._oldest = start, 0, 0, math.inf
        self._life.clear(start)
        self._store.forget()
        if self._priorities is not None:
            self._priorities.remove(np.arange(self.capacity))
        self._plain = self._is_plain()

    def _is_plain(self) -> bool:
        return not (self._ages or self._store.expires or self._life.removed)

    def state_dict(self) -> dict[str, Any]:
        """Contents, counters and generator."""
        return {
            'kind': 'replay', 'capacity': self.capacity, 'next': self._next, 'size': self._size,
            'oldest': self._oldest, 'skipped': self._skipped, 'sampled': self.sampled,
            'source': self._source.state_dict(), 'life': self._life.state_dict(self._next),
            'priorities': None if self._priorities is None else self._priorities.state_dict(),
            'store': self._store.state_dict(slice(0, self._size)),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        if state['kind'] != 'replay' or state['capacity'] != self.capacity:
            raise ValueError(f"replay buffer '{self.name}': the saved buffer is of kind '{state['kind']}' with "
                             f"{state.get('capacity')} rows, this one of kind 'replay' with {self.capacity}")
        self._next, self._size, self._oldest = state['next'], state['size'], state['oldest']
        self._head, self._skipped, self.sampled = self._next % self.capacity, state['skipped'], state['sampled']
        self._source.load_state_dict(state['source'])
        self._life.load_state_dict(state['life'])
        self._store.load_state_dict(state['store'], slice(0, self._size))
        self._priorities = None
        if state['priorities'] is not None:
            self._priorities = Priorities(self.capacity, self._cfg.alpha, self._cfg.beta, self._cfg.anneal_step)
            self._priorities.load_state_dict(state['priorities'])
        self._plain = self._is_plain()
        self._outputs.clear()
