"""The on-policy kind of buffer: rows of one round, given out in shuffled minibatches, then forgotten."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nervex.data.batch import Batch
from nervex.data.buffer import Buffer
from nervex.data.origins import described
from nervex.data.ring import Ring, rows_of
from nervex.data.sampling import Sampled, handed_out

logger = logging.getLogger(__name__)


class OnPolicyKind(Buffer):
    """
    Overview:
        Keeps everything that is pushed in one round (it grows as needed, nothing is dropped). ``batches`` gives epochs
        of shuffled minibatches without replacement, as slices of one permuted copy; the buffer is empty from then on,
        and what is pushed meanwhile belongs to the next round.
    """

    kind, own_rounds = 'on_policy', True

    def __init__(self, name: str, cfg: Any, seed: Any = None) -> None:
        super().__init__(name, cfg, seed)
        self._rng = np.random.default_rng(seed)
        self._ring, self._spare = (Ring(1, f"buffer '{name}'", wraps=False) for _ in range(2))
        self._earlier = 0  # rows of earlier rounds

    @property
    def count(self) -> int:
        """Rows that can be sampled."""
        return self._ring.clock[0]

    @property
    def pushed(self) -> int:
        """Rows that were ever pushed."""
        return self._earlier + self.count

    def push(self, columns: Mapping) -> None:
        """Append rows; priorities mean nothing here."""
        if not (n := rows_of(columns)):
            return
        used = self.count
        if used + n > self._ring.capacity:
            self._ring.grow(max(used + n, 2 * used))
        self._ring.append({name: column for name, column in columns.items() if name != 'priority'})
        self._use_quick_way(OnPolicyKind, self._ring.put)

    def ready(self, batch_size: int, cur_learner_iter: int = 0, samples: int | None = None) -> bool:
        """Whether ``batch_size`` rows may be sampled: the rows of a round are used as often as the learner likes."""
        return self.count >= max(batch_size * self._cfg.min_sample_ratio, self.start_size, 1)

    def sample(self, batch_size: int, cur_learner_iter: int = 0, reuse: bool = False) -> Any:
        """Rows drawn without replacement; the buffer keeps them. None when there is not enough data."""
        if not self.ready(batch_size):
            return None
        slots = self._rng.choice(self.count, batch_size, replace=batch_size > self.count)
        columns = self._ring.gather(slots)
        sample = Sampled.drawn(columns, (self._describe, columns, slots, self._earlier, cur_learner_iter))
        return handed_out(self, sample, self._ring, slots)

    def _describe(self, columns: dict, slots: np.ndarray, first: int, cur_learner_iter: int) -> dict[str, Any]:
        return described(self.name, slots + first, slots, np.ones(len(slots), np.int64), columns, cur_learner_iter)

    def batches(self, batch_size: int, count: int, cur_learner_iter: int = 0) -> Iterator[Any]:
        """``count`` epochs of minibatches; the last one of an epoch may be short, unless ``drop_last``."""
        size, first, drop_last = self.count, self._earlier, self._cfg.drop_last
        rows, self._ring = self._ring, self._spare
        self._spare, self._earlier = rows, first + size
        self._ring.restart()
        self._use_quick_way(OnPolicyKind, self._ring.put)
        if not size:
            logger.warning("buffer '%s': no rows to learn from", self.name)
        elif drop_last and size < batch_size:
            logger.warning("buffer '%s': %d rows are less than one minibatch of %d", self.name, size, batch_size)
        for _ in range(count):
            order = self._rng.permutation(size)
            epoch = Batch.of(rows.gather_again(order)[0])
            for start in range(0, size - size % batch_size if drop_last else size, batch_size):
                slots, columns = order[start : start + batch_size], epoch[start : start + batch_size]._columns
                sample = Sampled.drawn(columns, (self._describe, columns, slots, first, cur_learner_iter))
                yield handed_out(self, sample, rows, slots)
                cur_learner_iter += 1

    def clear(self) -> None:
        """Forget all rows."""
        self._earlier += self.count
        self._ring.restart()

    def state_dict(self) -> dict[str, Any]:
        """Contents, counters and generator."""
        return {
            'kind': self.kind,
            'total': self.pushed,
            'sampled': self.sampled,
            'store': self._ring.state_dict(self.count),
            'generator': self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping) -> None:
        """Put back what ``state_dict`` gave."""
        self._check_state(state)
        rows = state['store']['next_row']
        self._ring = Ring(max(rows, 1), f"buffer '{self.name}'", wraps=False)
        self._ring.load_state_dict(state['store'])
        self._use_quick_way(OnPolicyKind, self._ring.put)
        self._earlier, self.sampled = state['total'] - rows, state['sampled']
        self._rng.bit_generator.state = state['generator']
