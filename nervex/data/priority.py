"""Priorities of the slots of a ring: which slots to draw, and with what importance sampling weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from nervex.data.sum_tree import bounded, sum_tree

_FLOAT64 = np.dtype(np.float64)


class Priorities:
    """
    Overview:
        Slot i is drawn with probability p_i^alpha / sum_j p_j^alpha and has the importance sampling weight
        (N P_i)^-beta, divided by the largest such weight of all stored rows (Schaul et al., 2016). New rows get the
        largest priority seen so far (1 at first) or one that came with them. A priority of 0 counts as ``eps``: it
        would never be drawn, and would take all weight from the others.
    Arguments:
        - alpha, beta (:obj:`float`): as above; beta goes up to 1 linearly in ``anneal_step`` draws (0 or inf: never)
        - eps (:obj:`float`): what stands for a priority of 0
        - compiled (:obj:`bool | None`): use numba; None means if it is installed
    """

    def __init__(
        self,
        capacity: int,
        alpha: float = 0.6,
        beta: float = 0.4,
        anneal_step: float = 0,
        eps: float = 1e-2,
        compiled: bool | None = None,
    ) -> None:
        self.alpha, self.beta, self.eps = alpha, beta, eps
        self._exponents = np.array(alpha), np.array(beta, np.float32)  # twice as fast as Python's numbers
        self.max_priority = 1.0
        self.values = np.zeros(capacity)
        self._capacity = capacity
        self._first_beta, self._draws = beta, 0
        self._beta_step = (1.0 - beta) / anneal_step if 0 < anneal_step < math.inf else 0.0
        self._tree = sum_tree(capacity, compiled)
        self._pending = self._pending_end = 0  # so many slots before that one have max_priority, but not in the tree

    def push(self, start: int, n: int, given: np.ndarray | None = None) -> None:
        """Rows at ``n`` slots from ``start`` on are new; ``given`` are their priorities (NaN: none was given)."""
        if given is None:  # the largest priority does not change before the next flush, so that they can wait for it
            if start != self._pending_end or self._pending + n > self._capacity:
                self._flush()
            self._pending += n
            end = start + n
            self._pending_end = end if end < self._capacity else end - self._capacity
            return
        self._flush()
        slots = (np.arange(n) + start) % self._capacity
        priority = np.where(np.isnan(given), self.max_priority, given)
        priority[priority == 0.0] = self.eps
        self.values[slots] = priority
        self.max_priority = max(self.max_priority, float(priority.max()))
        self._tree.set(slots, self._weights(priority))

    def _flush(self) -> None:
        """Bring the rows that wait into the tree."""
        n = self._pending
        if n:
            self._pending = 0
            weight = float(self._weights(np.array([self.max_priority]))[0])
            last = self._pending_end or self._capacity
            first = last - n
            for start, stop in ((max(first, 0), last), (first + self._capacity, self._capacity)):
                if start < stop and start >= 0:
                    self.values[start:stop] = self.max_priority
                    self._tree.set_range(start, stop, weight)

    def _weights(self, priority: np.ndarray) -> np.ndarray:
        return bounded(np.power(priority, self._exponents[0]))

    def draw(self, fractions: np.ndarray) -> np.ndarray:
        """A slot from each of ``n`` equal parts of the total weight, at these fractions of the parts."""
        self._before_draw()
        return self._tree.draw(fractions)[0]

    def draw_rows(self, fractions: np.ndarray, next_number: int, uses: np.ndarray) -> tuple[np.ndarray, ...]:
        """The same for a ring: slots, importance weights, numbers of the rows and their priorities."""
        if self._pending or self._beta_step:
            self._before_draw()
        else:
            self._draws += 1
        slots, ratios, numbers, priority = self._tree.draw_rows(fractions, next_number, self.values, uses)
        return slots, np.power(ratios, self._exponents[1], ratios), numbers, priority

    def _before_draw(self) -> None:
        if self._pending:
            self._flush()
        if self._beta_step:
            self.beta = min(1.0, self._first_beta + self._draws * self._beta_step)
            self._exponents[1][...] = self.beta
        self._draws += 1

    def importance(self, slots: np.ndarray) -> np.ndarray:
        """The importance sampling weights of these slots, with the beta of the last draw."""
        self._flush()
        return (self._tree.smallest / self._tree.weights.take(slots)).astype(np.float32) ** self._exponents[1]

    def update(self, slots: np.ndarray, priority: np.ndarray) -> None:
        """New priorities of slots that hold a row."""
        self._flush()
        if not priority.all():
            priority = np.where(priority == 0.0, self.eps, priority)
        self.values[slots] = priority
        self.max_priority = max(self.max_priority, float(priority.max(initial=0.0)))
        self._tree.set(slots, self._weights(priority))

    def raised(self, given: Any, label: Callable[[int], str]) -> np.ndarray:
        """The priorities of an update, checked, plus ``eps``."""
        if type(given) is np.ndarray and given.dtype is _FLOAT64 and given.ndim == 1 and given.flags.carray:
            raised = self._tree.raised(given, self.eps)
            if raised is not None:
                return raised
        return checked_priorities(given, label, 'update') + self.eps

    def update_rows(
        self, numbers: np.ndarray, slots: np.ndarray, priority: np.ndarray, oldest: int, newest: int
    ) -> None:
        """New priorities, which ``raised`` has given, of rows of a ring; those that are gone are skipped."""
        if self._pending:
            self._flush()
        weights = np.power(priority, self._exponents[0])
        largest = self._tree.set_rows(numbers, slots, weights, priority, self.values, oldest, newest)
        if largest > self.max_priority:
            self.max_priority = largest

    def remove(self, slots: np.ndarray) -> None:
        """These slots hold nothing any more: never draw them."""
        self._flush()
        self._tree.set(slots, 0.0)

    def state_dict(self) -> dict[str, Any]:
        """Priorities, weights and counters."""
        self._flush()
        return {
            'values': torch.from_numpy(self.values.copy()),
            'weights': torch.from_numpy(self._tree.weights.copy()),
            'max_priority': self.max_priority,
            'beta': self.beta,
            'draws': self._draws,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._pending = 0
        self.values[:] = state['values'].numpy()
        self._tree.set(np.arange(self._capacity), state['weights'].numpy())
        self.max_priority, self.beta, self._draws = state['max_priority'], state['beta'], state['draws']
        self._exponents[1][...] = self.beta


def checked_priorities(given: Any, label: Callable[[int], str], where: str, allow_none: bool = False) -> np.ndarray:
    """
    Overview:
        Priorities as a float64 array; negative, infinite and NaN ones raise ValueError that names their items.
    Arguments:
        - label (:obj:`Callable`): position -> name of the item
        - allow_none (:obj:`bool`): None in the list means that the item has no priority, and becomes NaN
    """
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu().numpy()
    if isinstance(given, np.ndarray) and given.dtype != object:
        priority = given.reshape(-1).astype(np.float64, copy=False)
        none = None
    else:
        items = list(given)
        none = np.array([v is None for v in items], dtype=bool)
        if none.any() and not allow_none:
            raise ValueError(f'{where}: no priority for {label(int(none.argmax()))}')
        priority = np.array([0.0 if v is None else float(v) for v in items], dtype=np.float64)
    if len(priority) and not (priority.min() >= 0.0 and priority.max() < math.inf):
        bad = np.flatnonzero(~((priority >= 0.0) & (priority < math.inf)))
        items = ', '.join(f'{label(k)}: {priority[k]}' for k in bad[:5].tolist())
        more = f' and {len(bad) - 5} more' if len(bad) > 5 else ''
        raise ValueError(f'{where}: priorities must be finite and at least 0, got {items}{more}')
    if none is not None and none.any():
        priority[none] = np.nan
    return priority
