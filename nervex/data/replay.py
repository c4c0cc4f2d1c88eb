"""The replay kind of buffer: a ring of rows, sampled at random, uniformly or by priority."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from nervex.data.batch import Batch
from nervex.data.buffer_log import BufferLog
from nervex.data.columns import ColumnStore, rows_of
from nervex.data.frames import FrameStore
from nervex.data.index_source import IndexSource
from nervex.data.priority import Priorities, checked_priorities
from nervex.data.row_life import RowLife
from nervex.data.sampled import Sampled, UniqueIds, integers, item_numbers, separate_objects

logger = logging.getLogger(__name__)
_PRIORITY_BYTES = 36  # of the sum tree and the priorities, per row


class ReplayKind:
    """
    Overview:
        One named buffer of the manager. Rows are numbered as they come (row k is called ``<name>_k``) and lie in slot
        k modulo capacity; the oldest make room for new ones. Not locked: the manager holds its lock around every call.
    Attributes:
        - plain (:obj:`bool`): a push is nothing but writing to ``store`` and raising ``next_row``: the manager does it
          itself, as each further call costs a tenth of it. What else new rows need is done when they are sampled
        - next_row (:obj:`int`): number of the next row
    """

    def __init__(self, name: str, cfg: Any, seed: Any = None) -> None:
        self.name, self._cfg, self.capacity = name, cfg, cfg.meta_maxlen
        self.start_size, self.min_sample_ratio = cfg.replay_start_size, cfg.min_sample_ratio
        self._life = RowLife(self.capacity, cfg.max_reuse)
        store = ColumnStore if cfg.frame_axis is None else partial(FrameStore, frame_axis=cfg.frame_axis)
        self.store = store(self.capacity, f"replay buffer '{name}'")
        self.store.overhead = 4 + (_PRIORITY_BYTES if cfg.use_priority else 0)
        self._source, self._ids = IndexSource(seed), UniqueIds.kind(name)
        self._priorities: Priorities | None = None
        self.next_row = 0
        self._first = self._skipped = 0  # first row since the last clear(); numbers left out by clear()
        self._weighed = 0  # rows from this number on are not known to the priorities yet
        self.sampled = 0  # rows, over the whole life
        self.log: BufferLog | None = None
        self._ages = cfg.max_staleness != math.inf
        self._oldest = math.inf  # no row was collected in an earlier learner iteration
        self.plain = self._is_plain()
        self._outputs: dict[int, list] = {}
        self._used: deque[dict] = deque()

    @property
    def _size(self) -> int:
        """Slots in use."""
        return min(self.next_row - self._first, self.capacity)

    @property
    def count(self) -> int:
        """Rows that can be sampled."""
        return self._size - self._life.removed

    @property
    def pushed(self) -> int:
        """Rows that were ever pushed."""
        return self.next_row - self._skipped

    def _new_priorities(self) -> Priorities:
        return Priorities(self.capacity, self._cfg.alpha, self._cfg.beta, self._cfg.anneal_step)

    def _prioritize(self) -> None:
        self._priorities = self._new_priorities()
        self._weighed = self._first
        self._weigh()
        if self._life.removed:
            self._priorities.remove(np.setdiff1d(np.arange(self._size), self._life.alive_slots(self._size)))

    def _weigh(self) -> None:
        """Tell the priorities of rows that have come without any; before every use of them."""
        n = min(self.next_row - self._weighed, self.capacity)
        if n and self._priorities is not None:
            self._priorities.push((self.next_row - n) % self.capacity, n)
        self._weighed = self.next_row

    def plan(self, columns: dict) -> int:
        """Bytes that rows like these will need; BufferMemoryError if they cannot be had."""
        return self.store.plan({name: column for name, column in columns.items() if name != 'priority'})

    # ---- in
    def push(self, columns: dict) -> None:
        """Append rows; of more rows than fit, only the newest are kept."""
        n, capacity = rows_of(columns), self.capacity
        if not n:
            return
        if not self._life.allocated:
            self._begin(columns)
        columns, given = self._checked(columns, n)
        start = self.next_row % capacity
        try:
            self.store.write(columns, start)
        except Exception:  # what lay in these slots may be half overwritten: it is gone, as if it had worked
            slots = (np.arange(n) + start) % capacity
            self._remove(slots[slots < self._size])
            raise
        if given is not None:
            self._weigh()
        self.next_row += n
        if n > capacity:  # the ring went round: only the last rows are there
            start, n, given = self.next_row % capacity, capacity, None if given is None else given[-capacity:]
        self._life.push(start, n)
        if given is not None:
            self._priorities.push(start, n, given)
            self._weighed = self.next_row
        if self.store.expires and (expired := self.store.expired(self._size)) is not None:
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
        priority = checked_priorities(given, lambda k: f'{self.name}_{self.next_row + k}', 'push_data', allow_none=True)
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
            self.plain = False
            slots = self._life.remove(slots)
            self._weigh()
            if self._priorities is not None:
                self._priorities.remove(slots)

    def _drop_stale(self, cur_learner_iter: int) -> None:
        if cur_learner_iter - self._oldest <= self._cfg.max_staleness or not self.count:
            return
        slots = self._life.alive_slots(self._size)
        born = self.store.arrays['collect_iter'][slots].reshape(-1).astype(np.float64)
        stale = cur_learner_iter - born > self._cfg.max_staleness
        self._oldest = float(born[~stale].min(initial=math.inf))
        self._remove(slots[stale])

    # ---- out
    def ready(self, batch_size: int, cur_learner_iter: int = 0) -> bool:
        """Whether ``batch_size`` rows may be sampled; rows that are too old are removed first."""
        if self._ages:
            self._drop_stale(cur_learner_iter)
        rows = min(self.next_row - self._first, self.capacity) - self._life.removed
        return rows >= batch_size * self.min_sample_ratio and rows >= self.start_size and rows > 0

    def ready_for(self, batch_size: int, samples: int, cur_learner_iter: int = 0) -> bool:
        """Whether so many samples may be taken, if rows live on; ValueError if there can never be enough rows."""
        wanted = max(batch_size * self.min_sample_ratio, self.start_size)
        if wanted > self.capacity:
            raise ValueError(
                f"replay buffer '{self.name}': replay_start_size = {self.start_size} and min_sample_ratio = "
                f'{self.min_sample_ratio} with batches of {batch_size} rows want {wanted:g} rows, but meta_maxlen is '
                f'{self.capacity}: make it larger or the others smaller'
            )
        wanted = min(max(wanted, samples * batch_size / self._cfg.max_reuse), self.capacity)
        return self.ready(batch_size, cur_learner_iter) and self.count >= wanted

    def sample(self, batch_size: int, cur_learner_iter: int = 0, reuse: bool = False) -> Sampled | None:
        """A sample, None when there is not enough data. ``reuse`` gives one of two alternating batches."""
        if not self.ready(batch_size, cur_learner_iter):
            return None
        priorities, life, found = self._priorities, self._life, None
        if priorities is not None:
            if self._weighed != self.next_row:
                self._weigh()
            found = priorities.draw_rows(self._source.fractions(batch_size), self.next_row, life.uses(self.next_row))
            slots = found[0]
        elif self._cfg.max_reuse != math.inf:
            slots = self._life.stratified(self._source.fractions(batch_size), self._size)
        elif self._life.removed:
            alive = self._life.alive_slots(self._size)
            slots = alive[self._source.rng.integers(0, len(alive), batch_size)]
        else:
            slots = self._source.draw(batch_size, self._size)
        columns, tensors = self._gather(slots, reuse)
        self.sampled += batch_size
        if found is None:
            worn = life.use(slots, self.next_row)
        else:
            worn = life.worn(slots) if life.max_reuse != math.inf else None
            columns['IS'] = found[1]
            columns['priority'] = found[3]
            columns['replay_unique_id'] = found[2].view(self._ids)
            columns['replay_buffer_idx'] = slots
        uses = None if worn is None else self._life.uses(self.next_row).take(slots)
        if worn is not None:
            self._retire(worn)
        describe = (self._describe, slots, columns, self.next_row, cur_learner_iter, uses)
        sample = Sampled.drawn(columns, describe, tensors)
        if self.log is not None:
            self.log.sampled(sample)
        return sample

    def _gather(self, slots: np.ndarray, reuse: bool) -> tuple[dict, dict | None]:
        if reuse and self.store.reusable:
            n = len(slots)
            if n not in self._outputs:
                if len(self._outputs) > 4:
                    self._outputs.clear()
                self._outputs[n] = [self.store.outputs(n), self.store.outputs(n)]
            pair = self._outputs[n]
            pair.reverse()
            flat, view, tensors = pair[0]
            if self.store.gather_into(slots, flat):
                if self.store.holds_objects:
                    separate_objects(view, slots, self._cfg.deepcopy)
                return view.copy(), tensors
            del self._outputs[n]  # a column's dtype has changed
        columns = self.store.gather(slots)
        if self.store.holds_objects:
            separate_objects(columns, slots, self._cfg.deepcopy)
        return columns, None

    def _numbers(self, slots: np.ndarray, next_number: int) -> np.ndarray:
        """The numbers of the rows in these slots, when ``next_number`` was the next one."""
        newest = next_number - 1
        return newest - (newest - slots) % self.capacity

    def _describe(
        self, slots: np.ndarray, columns: dict, next_number: int, cur_learner_iter: int, uses: np.ndarray | None
    ) -> dict[str, Any]:
        """The additional columns of a sample."""
        n, born = len(slots), columns.get('collect_iter')
        return {
            'IS': np.ones(n, dtype=np.float32),
            'priority': np.ones(n),
            'replay_unique_id': UniqueIds.of(self._numbers(slots, next_number), self.name),
            'replay_buffer_idx': slots.copy(),
            'use': self._life.uses(self.next_row).take(slots) if uses is None else uses,
            'staleness': np.zeros(n, np.int64) if born is None else cur_learner_iter - np.asarray(born).reshape(-1),
        }

    def _retire(self, slots: np.ndarray) -> None:
        """Remove rows that have been used often enough."""
        if self._cfg.enable_track_used_data:
            self._used.extend(row.to_dict() for row in Batch.of(self.store.gather(slots)))
        self._remove(slots)

    def used_data(self) -> dict | None:
        """One of the rows that were removed for their number of uses, oldest first; None if there is none."""
        return self._used.popleft() if self._used else None

    def batches(self, batch_size: int, count: int, cur_learner_iter: int = 0) -> Iterator[Sampled]:
        """Up to ``count`` samples; fewer, with a warning, when the data does not suffice."""
        for k in range(count):
            batch = self.sample(batch_size, cur_learner_iter + k, reuse=True)
            if batch is None:
                logger.warning(
                    "replay buffer '%s': %d rows give only %d of %d samples of %d rows",
                    self.name,
                    self.count,
                    k,
                    count,
                    batch_size,
                )
                return
            yield batch

    def update(self, info: Mapping) -> None:
        """New priorities for rows that are still there (one number per row: its id must fit its slot)."""
        if self._cfg.use_priority is False or self.next_row == self._first:
            return
        numbers, slots = item_numbers(info['replay_unique_id'], self.name), integers(info['replay_buffer_idx'])
        priorities = self._new_priorities() if self._priorities is None else self._priorities
        priority = priorities.raised(info['priority'], lambda k: f'{self.name}_{numbers[k]}')
        if not len(priority) == len(numbers) == len(slots):
            raise ValueError(
                f'update: {len(priority)} priorities, {len(numbers)} replay_unique_id and {len(slots)} '
                'replay_buffer_idx; there must be one of each per row'
            )
        if self._priorities is None:  # nothing was wrong: from now on the rows have priorities
            self._prioritize()
        if self._weighed != self.next_row:
            self._weigh()
        newest = self.next_row - 1
        self._priorities.update_rows(numbers, slots, priority, max(self._first, newest - self.capacity + 1), newest)

    def clear(self) -> None:
        """Forget all rows. Numbers go on: an id is never given twice."""
        start = -(-self.next_row // self.capacity) * self.capacity  # the ring starts at slot 0 again
        self._skipped += start - self.next_row
        self.next_row = self._first = self._weighed = start
        self._oldest = math.inf
        self._life.clear(start)
        self.store.forget()
        if self._priorities is not None:
            self._priorities.remove(np.arange(self.capacity))
        self.plain = self._is_plain()

    def _is_plain(self) -> bool:
        return not (self._ages or self.store.expires or self._life.removed)

    def state_dict(self) -> dict[str, Any]:
        """Contents, counters and generator."""
        self._weigh()
        return {
            'kind': 'replay',
            'capacity': self.capacity,
            'next': self.next_row,
            'size': self._size,
            'oldest': self._oldest,
            'skipped': self._skipped,
            'sampled': self.sampled,
            'source': self._source.state_dict(),
            'life': self._life.state_dict(self.next_row),
            'priorities': None if self._priorities is None else self._priorities.state_dict(),
            'store': self.store.state_dict(slice(0, self._size)),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        if state['kind'] != 'replay' or state['capacity'] != self.capacity:
            raise ValueError(
                f"replay buffer '{self.name}': the saved buffer is of kind '{state['kind']}' with "
                f"{state.get('capacity')} rows, this one of kind 'replay' with {self.capacity}"
            )
        self.next_row = self._weighed = state['next']
        self._first, self._oldest = state['next'] - state['size'], state['oldest']
        self._skipped, self.sampled = state['skipped'], state['sampled']
        self._source.load_state_dict(state['source'])
        self._life.load_state_dict(state['life'])
        self.store.load_state_dict(state['store'], slice(0, self._size))
        self._priorities = None
        if state['priorities'] is not None:
            self._priorities = self._new_priorities()
            self._priorities.load_state_dict(state['priorities'])
        self.plain = self._is_plain()
        self._outputs.clear()
