"""The replay kind of buffer: a ring of rows, sampled at random, uniformly or by priority."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch
from nervex.data.buffer import Buffer
from nervex.data.origins import UniqueIds, collected_at, described, integers, item_numbers, separate_objects
from nervex.data.priority import Priorities, checked_priorities
from nervex.data.ring import Ring, rows_of
from nervex.data.sampling import IndexSource, Sampled, handed_out

logger = logging.getLogger(__name__)
_PRIORITY_BYTES = 36  # of the sum tree and the priorities, per row
_ONE = np.int32(1)  # of the dtype of the counters: ten times faster to add than a Python int


class ReplayKind(Buffer):
    """
    Overview:
        A ring: rows are numbered as they come (row k is called ``<name>_k``) and lie in slot k modulo capacity; the
        oldest make room for new ones. A push only writes columns, mostly by ``put``; what else new rows need (their
        counters, priorities, ages) is done by ``_settle`` before anything is asked of the buffer.
    """

    kind = 'replay'

    def __init__(self, name: str, cfg: Any, seed: Any = None) -> None:
        super().__init__(name, cfg, seed)
        self.capacity, self._ratio = cfg.meta_maxlen, cfg.min_sample_ratio
        overhead = 4 + (_PRIORITY_BYTES if cfg.use_priority else 0)
        self.ring = Ring(self.capacity, f"replay buffer '{name}'", overhead, cfg.frame_axis)
        self._clock = self.ring.clock
        self._source, self._ids = IndexSource(seed), UniqueIds.kind(name)
        self._limited, self._ages = cfg.max_reuse != math.inf, cfg.max_staleness != math.inf
        self._priorities: Priorities | None = None
        self._used: deque[dict] = deque()
        self._known = 0  # rows from here on have not been settled
        self._skipped = 0  # numbers left out by clear()
        self._short = False  # whether it was said that the data does not suffice
        self._forget_rows()

    def _forget_rows(self) -> None:
        self._removed = 0  # rows taken out before their time
        self._alive: np.ndarray | None = None  # which slots hold a row; made with the first removal
        self._alive_slots: np.ndarray | None = None  # cache for draws
        self._oldest = math.inf  # no row was collected in an earlier learner iteration
        self._uses = np.zeros(0, dtype=np.int32)  # of every slot, once there are rows
        self._drawn: list[np.ndarray] = []  # slots of samples that are not counted in _uses yet

    @property
    def _size(self) -> int:
        return min(self._clock[0] - self.ring.first, self.capacity)

    @property
    def count(self) -> int:
        """Rows that can be sampled."""
        self._settle()
        return self._size - self._removed

    @property
    def pushed(self) -> int:
        """Rows that were ever pushed."""
        return self._clock[0] - self._skipped

    def plan(self, columns: Mapping) -> int:
        """Bytes that rows like these will need; BufferMemoryError if they cannot be had."""
        return self.ring.plan({name: column for name, column in columns.items() if name != 'priority'})

    # ---- in
    def push(self, columns: Mapping) -> None:
        """Append rows; of more rows than fit, only the newest are kept."""
        if not (n := rows_of(columns)):
            return
        columns = dict(columns)
        given = self._checked(columns.pop('priority', None), n)
        try:
            if self._ages and 'collect_iter' not in columns:
                raise KeyError(f"replay buffer '{self.name}': max_staleness needs 'collect_iter' in every row")
            self._settle()
            self.ring.append(columns)
        except BaseException:
            self._remove(self.ring.mend(n))
            raise
        self._use_quick_way(ReplayKind, self.ring.put)
        self._settle(given)
        if self.ring.frames is not None:
            self._remove(self.ring.frames.expired(self.ring.arrays, self._size))

    def _checked(self, given: Any, n: int) -> np.ndarray | None:
        """Priorities that came with rows; None if there are none, or if they are not wanted."""
        if given is None or self._cfg.use_priority is False:
            return None
        number = self._clock[0]
        priority = checked_priorities(given, lambda k: f'{self.name}_{number + k}', 'push_data', allow_none=True)
        if len(priority) != n:
            raise ValueError(f'push_data: {n} rows came with {len(priority)} priorities')
        return None if np.isnan(priority).all() else priority

    def _settle(self, given: np.ndarray | None = None) -> None:
        """
        Overview:
            Do what rows need that have come since the last call.
        Arguments:
            - given (:obj:`np.ndarray | None`): their priorities, NaN for those that have none
        """
        next_row = self._clock[0]
        n = min(next_row - self._known, self.capacity)
        if not n:
            return
        self._known = next_row
        slots = np.arange(next_row - n, next_row) % self.capacity
        self._counted()[slots] = 0
        if self._alive is not None:
            self._removed -= int(np.count_nonzero(~self._alive[slots]))
            self._alive[slots] = True
        if self._ages:
            self._oldest = min(self._oldest, float(collected_at(self.ring.arrays['collect_iter'][slots]).min()))
        self._alive_slots = None
        if self._priorities is None and (given is not None or self._cfg.use_priority):
            self._prioritize()
        if self._priorities is not None:
            self._priorities.add(slots, given if given is None else given[-n:])

    def _prioritize(self) -> Priorities:
        cfg = self._cfg
        self._priorities = priorities = Priorities(self.capacity, cfg.alpha, cfg.beta, cfg.anneal_step)
        priorities.set(self._rows(), np.ones(1))
        return priorities

    def _rows(self) -> np.ndarray:
        if self._alive is None:
            return np.arange(self._size)
        if self._alive_slots is None:
            self._alive_slots = np.flatnonzero(self._alive[: self._size])
        return self._alive_slots

    def _remove(self, slots: np.ndarray) -> None:
        if not len(slots):
            return
        if self._alive is None:
            self._alive = np.ones(self.capacity, dtype=bool)
        slots = np.unique(slots[self._alive[slots]])
        self._alive[slots], self._alive_slots = False, None
        self._removed += len(slots)
        if self._priorities is not None:
            self._priorities.remove(slots)

    def _drop_stale(self, cur_learner_iter: int) -> None:
        if cur_learner_iter - self._oldest <= self._cfg.max_staleness or self._size == self._removed:
            return
        slots = self._rows()
        born = collected_at(self.ring.arrays['collect_iter'][slots]).astype(np.float64)
        stale = cur_learner_iter - born > self._cfg.max_staleness
        self._oldest = float(born[~stale].min(initial=math.inf))
        self._remove(slots[stale])

    # ---- out
    def ready(self, batch_size: int, cur_learner_iter: int = 0, samples: int | None = None) -> bool:
        """Whether ``batch_size`` rows may be sampled, or so many samples; rows that are too old are removed first."""
        if self._known != self._clock[0]:
            self._settle()
        if self._ages:
            self._drop_stale(cur_learner_iter)
        rows = min(self._clock[0] - self.ring.first, self.capacity) - self._removed
        wanted = batch_size * self._ratio
        if samples is not None:
            wanted = max(wanted, self.start_size)
            if wanted > self.capacity:
                raise ValueError(
                    f"replay buffer '{self.name}': replay_start_size = {self.start_size} and min_sample_ratio = "
                    f'{self._ratio} with batches of {batch_size} rows want {wanted:g} rows, but '
                    f'meta_maxlen is {self.capacity}: make it larger or the others smaller'
                )
            wanted = min(max(wanted, samples * batch_size / self._cfg.max_reuse), self.capacity)
        return rows >= wanted and rows >= self.start_size and rows > 0

    def sample(self, batch_size: int, cur_learner_iter: int = 0, reuse: bool = False) -> Any:
        """A sample, None when there is not enough data. ``reuse`` gives one of two alternating batches."""
        if not self.ready(batch_size, cur_learner_iter):
            return None
        priorities, next_row, found = self._priorities, self._clock[0], None
        if priorities is not None:
            found = priorities.draw(self._source.fractions(batch_size), next_row, self._uses)
            slots = found[0]
        elif self._limited:
            slots = self._stratified(self._source.fractions(batch_size))
        elif self._removed:
            rows = self._rows()
            slots = rows[self._source.rng.integers(0, len(rows), batch_size)]
        else:
            slots = self._source.draw(batch_size, min(next_row - self.ring.first, self.capacity))
        columns, tensors = self.ring.gather_again(slots) if reuse else (self.ring.gather(slots), None)
        if self.ring.holds_objects:
            separate_objects(columns, slots, self._cfg.deepcopy)
        if found is None:
            self._drawn.append(slots)
            if len(self._drawn) > 64:
                self._counted()
        else:
            columns['IS'] = found[1]
            columns['priority'] = found[3]
            columns['replay_unique_id'] = found[2].view(self._ids)
            columns['replay_buffer_idx'] = slots
        uses = self._wear(slots) if self._limited else None
        describe = self._describe, slots, columns, next_row, cur_learner_iter, uses
        return handed_out(self, Sampled.drawn(columns, describe, tensors), self.ring, slots)

    def _stratified(self, fractions: np.ndarray) -> np.ndarray:
        """A slot of every one of ``n`` equal parts of the stored rows: no row comes much more often than another."""
        n, rows = len(fractions), self._size - self._removed
        ranks = ((np.arange(n) + fractions) * (rows / n)).astype(np.int64)
        np.minimum(ranks, rows - 1, out=ranks)
        return self._rows()[ranks] if self._removed else ranks

    def _counted(self) -> np.ndarray:
        if not len(self._uses):
            self._uses = np.zeros(self.capacity, dtype=np.int32)
        if self._drawn:
            np.add.at(self._uses, np.concatenate(self._drawn), _ONE)
            self._drawn = []
        return self._uses

    def _wear(self, slots: np.ndarray) -> np.ndarray:
        """How often these rows, just sampled, were used; those that may not be sampled again are removed."""
        uses = self._counted().take(slots)
        if (worn := slots[uses >= self._cfg.max_reuse]).size:
            worn = np.unique(worn)
            if self._cfg.enable_track_used_data:
                self._used.extend(row.to_dict() for row in Batch.of(self.ring.gather(worn)))
            self._remove(worn)
        return uses

    def _describe(
        self, slots: np.ndarray, columns: dict, next_row: int, cur_learner_iter: int, uses: np.ndarray | None
    ) -> dict[str, Any]:
        """The additional columns of a sample that was taken when ``next_row`` was the number of the next row."""
        numbers = next_row - 1 - (next_row - 1 - slots) % self.capacity
        uses = self._counted().take(slots) if uses is None else uses
        return described(self.name, numbers, slots, uses, columns, cur_learner_iter)

    def used_data(self) -> dict | None:
        """One of the rows that were removed for their number of uses, oldest first; None if there is none."""
        return self._used.popleft() if self._used else None

    def batches(self, batch_size: int, count: int, cur_learner_iter: int = 0) -> Iterator[Any]:
        """Up to ``count`` samples; fewer when the data does not suffice, of which the first time warns."""
        for k in range(count):
            batch = self.sample(batch_size, cur_learner_iter + k, reuse=True)
            if batch is None:
                level, self._short = logging.DEBUG if self._short else logging.WARNING, True
                text = "replay buffer '%s': %d rows give only %d of %d samples of %d rows; this is said once"
                logger.log(level, text, self.name, self.count, k, count, batch_size)
                return
            yield batch

    def update(self, info: Mapping) -> None:
        """New priorities for rows that are still there (one number per row: its id must fit its slot)."""
        if self._cfg.use_priority is False or self._clock[0] == self.ring.first:
            return
        self._settle()
        numbers, slots = item_numbers(info['replay_unique_id'], self.name), integers(info['replay_buffer_idx'])
        newest = self._clock[0] - 1
        oldest, new = max(self.ring.first, newest - self.capacity + 1), self._priorities is None
        priorities = self._priorities or self._prioritize()
        try:
            priorities.update(numbers, slots, info['priority'], oldest, newest, lambda k: f'{self.name}_{numbers[k]}')
        except ValueError:
            if new:  # rows have priorities from the first good one on
                self._priorities = None
            raise

    def clear(self) -> None:
        """Forget all rows. Numbers go on: an id is never given twice."""
        next_row = self._clock[0]
        start = -(-next_row // self.capacity) * self.capacity  # the ring starts at slot 0 again
        self._skipped += start - next_row
        self.ring.restart(start)
        self._known = start
        self._forget_rows()
        if self.ring.frames is not None:
            self.ring.frames.forget()
        if self._priorities is not None:
            self._priorities.remove(np.arange(self.capacity))

    # ---- state
    def state_dict(self) -> dict[str, Any]:
        """Contents, counters and generator."""
        self._settle()
        return {
            'kind': self.kind,
            'capacity': self.capacity,
            'size': self._size,
            'oldest': self._oldest,
            'skipped': self._skipped,
            'sampled': self.sampled,
            'source': self._source.state_dict(),
            'uses': torch.from_numpy(self._counted().copy()),
            'alive': None if self._alive is None else torch.from_numpy(self._alive.copy()),
            'priorities': None if self._priorities is None else self._priorities.state_dict(),
            'store': self.ring.state_dict(self._size),
        }

    def load_state_dict(self, state: Mapping) -> None:
        """Put back what ``state_dict`` gave."""
        self._check_state(state, self.capacity)
        self.ring.load_state_dict(state['store'])
        self._use_quick_way(ReplayKind, self.ring.put)
        self._known = self._clock[0]
        self.ring.first = self._known - state['size']
        self._forget_rows()
        self._oldest, self._skipped, self.sampled = state['oldest'], state['skipped'], state['sampled']
        self._source.load_state_dict(state['source'])
        self._uses = state['uses'].numpy().copy()
        if state['alive'] is not None:
            self._alive = state['alive'].numpy().copy()
            self._removed = int(np.count_nonzero(~self._alive[: self._size]))
        self._priorities = None
        if state['priorities'] is not None:
            self._prioritize().load_state_dict(state['priorities'])
