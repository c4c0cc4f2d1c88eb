"""ReplayBuffers that sample by priority, or that grow without end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nervex.data.batch import Batch
from nervex.data.priority import Priorities, checked_priorities
from nervex.data.replay_buffer import ReplayBuffer


class PrioritizedReplayBuffer(ReplayBuffer):
    """
    Overview:
        Samples step i with probability p_i^alpha / sum_j p_j^alpha. Samples carry the column ``weight``: the importance
        sampling weights (N P_i)^-beta, divided by the largest one of all stored steps. A priority of 0 counts as 0.01.
    Arguments:
        - alpha, beta (:obj:`float`): the exponents above
        - anneal_step (:obj:`float`): samples after which beta has gone up to 1; 0 leaves it
        - compiled (:obj:`bool | None`): use numba; None means if it is installed
    """

    def __init__(
        self,
        size: int,
        alpha: float = 0.6,
        beta: float = 0.4,
        anneal_step: float = 0,
        compiled: bool | None = None,
        **options: Any,
    ) -> None:
        for name, value in (('alpha', alpha), ('beta', beta)):
            if not 0 <= value < math.inf:
                raise ValueError(f'PrioritizedReplayBuffer: {name} must be finite and at least 0, got {value}')
        self._priority_options = {'alpha': alpha, 'beta': beta, 'anneal_step': anneal_step, 'compiled': compiled}
        super().__init__(size, **options)

    def _set_up(self, capacity: int) -> None:
        super()._set_up(capacity)
        self._priorities = Priorities(capacity, **self._priority_options)

    def add(self, *step: Any, weight: float | None = None, **more: Any) -> int:
        """Add one step, with a priority of its own (``weight``) or the largest one so far. Otherwise as always."""
        slot = super().add(*step, **more)
        if weight is not None:
            self.update_weight([slot], [weight])
        return slot

    def sample_indices(self, batch_size: int) -> np.ndarray:
        """Slots of steps drawn by priority; of all steps in their order of time if ``batch_size`` is 0."""
        if batch_size == 0 or not len(self):
            return super().sample_indices(batch_size)
        return self._priorities.draw(self._source.fractions(batch_size))

    def _read(self, slots: np.ndarray) -> Batch:
        batch = super()._read(slots)
        batch._columns['weight'] = self._priorities.importance(slots)
        return batch

    def update_weight(self, index: Any, new_weight: Any) -> None:
        """New priorities for the steps in these slots, e.g. the size of their TD errors."""
        slots = self._slots(index).reshape(-1)
        given = [new_weight] if np.ndim(new_weight) == 0 else new_weight
        priority = checked_priorities(given, lambda k: f'step {slots[k]}', 'update_weight')
        if len(priority) != len(slots):
            raise ValueError(f'update_weight: {len(priority)} priorities for {len(slots)} steps')
        self._priorities.update(slots, priority)

    def reset(self) -> None:
        """Forget all steps; the memory is kept."""
        super().reset()
        self._priorities = Priorities(self.maxsize, **self._priority_options)

    def __getstate__(self) -> dict[str, Any]:
        return {
            **super().__getstate__(),
            'priority_options': self._priority_options,
            'priorities': self._priorities.state_dict(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._priority_options = state['priority_options']
        super().__setstate__(state)
        self._priorities.load_state_dict(state['priorities'])


class ListReplayBuffer(ReplayBuffer):
    """
    Overview:
        Keeps every step: it grows as needed, like a list, in the order of time. For rounds of data that are used up and
        forgotten (``reset``). ``size`` is only the room that it starts with.
    """

    def __init__(self, size: int = 256, **options: Any) -> None:
        super().__init__(size, **options)

    def add(self, *step: Any, **more: Any) -> int:
        """Add one step; gives its slot."""
        self._make_room(1)
        return super().add(*step, **more)

    def extend(self, batch: Any, env_id: Any = None) -> np.ndarray:
        """Add many steps in their order; gives their slots."""
        if isinstance(batch, Batch):
            self._make_room(len(batch))
        return super().extend(batch, env_id)

    def _make_room(self, n: int) -> None:
        if len(self) + n > self.maxsize:
            capacity = max(2 * self.maxsize, len(self) + n)
            self._settled().grow(capacity)
            self._store.grow(capacity, len(self))
            self._choose_writers()
