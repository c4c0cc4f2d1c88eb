"""Priorities of the slots of a ring: which slots to draw, and with what importance sampling weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from nervex.data import sum_tree

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
    """

    eps = 1e-2  # what stands for a priority of 0

    def __init__(self, capacity: int, alpha: float = 0.6, beta: float = 0.4, anneal_step: float = 0) -> None:
        self.max_priority, self.values = 1.0, np.zeros(capacity)
        self._alpha, self._beta = np.array(alpha), np.array(beta, np.float32)  # twice as fast as Python's numbers
        self._first_beta, self._draws = beta, 0
        self._beta_step = (1.0 - beta) / anneal_step if 0 < anneal_step < math.inf else 0.0
        self._loops = sum_tree.fastest()
        self._tree, self._offsets = sum_tree.empty_tree(capacity)
        self.weights = self._tree[0, :capacity]  # the leaves

    def add(self, slots: np.ndarray, given: np.ndarray | None = None) -> None:
        """New rows in these slots; ``given`` are their priorities (NaN: none was given)."""
        if given is None:
            self.set(slots, np.full(1, self.max_priority))
        else:
            self.set(slots, np.where(np.isnan(given), self.max_priority, given))

    def set(self, slots: np.ndarray, priority: np.ndarray) -> None:
        """New priorities (or one for all) of slots that hold a row."""
        if not priority.all():
            priority = np.where(priority == 0.0, self.eps, priority)
        self.values[slots] = priority
        self.max_priority = max(self.max_priority, float(priority.max(initial=0.0)))
        self._weigh(slots, sum_tree.bounded(np.power(priority, self._alpha)))

    def _weigh(self, slots: np.ndarray, weights: Any) -> None:
        self.weights[slots] = weights
        self._loops.refresh(self._tree, self._offsets, slots)

    def draw(self, fractions: np.ndarray, next_number: int, uses: np.ndarray) -> tuple[np.ndarray, ...]:
        """
        Overview:
            For each of ``n`` equal parts of the total weight a slot, at these fractions of the parts: slots, importance
            weights, numbers of the rows (row k is in slot k modulo capacity) and their priorities. The draws are
            counted in ``uses``.
        """
        if self._beta_step:
            self._beta[...] = min(1.0, self._first_beta + self._draws * self._beta_step)
            self._draws += 1
        n = fractions.size
        found = np.empty(n, np.int64), np.empty(n, np.float32), np.empty(n, np.int64), np.empty(n)
        self._loops.draw(self._tree, self._offsets, fractions, next_number, self.values, uses, *found)
        np.power(found[1], self._beta, found[1])
        return found

    def importance(self, slots: np.ndarray) -> np.ndarray:
        """The importance sampling weights of these slots, with the beta of the last draw."""
        smallest = self._tree[2, self._offsets[-1] :].min()
        return (smallest / self.weights.take(slots)).astype(np.float32) ** self._beta

    def update(
        self, numbers: np.ndarray, slots: np.ndarray, given: Any, oldest: int, newest: int, label: Callable[[int], str]
    ) -> None:
        """New priorities, raised by ``eps``, of rows of a ring; those that are gone (see ``set_rows``) are skipped."""
        if not (type(given) is np.ndarray and given.dtype is _FLOAT64 and given.ndim == 1):
            given = checked_priorities(given, label, 'update')
        priority = given + self.eps
        if not len(priority) == len(numbers) == len(slots):
            raise ValueError(
                f'update: {len(priority)} priorities, {len(numbers)} replay_unique_id and {len(slots)} '
                'replay_buffer_idx; there must be one of each per row'
            )
        weights = np.power(np.abs(priority), self._alpha)  # abs: NumPy shall not warn of negative ones, refused next
        rows = numbers, slots, weights, priority
        largest = self._loops.set_rows(self._tree, self._offsets, *rows, self.values, self.eps, oldest, newest)
        if largest > self.max_priority:
            self.max_priority = largest
        elif largest < -1.0:
            checked_priorities(given, label, 'update')  # raises: it says which ones are wrong

    def remove(self, slots: np.ndarray) -> None:
        """These slots hold nothing any more: never draw them."""
        self._weigh(slots, 0.0)

    def state_dict(self) -> dict[str, Any]:
        """Priorities, weights and counters."""
        return {
            'values': torch.from_numpy(self.values.copy()),
            'weights': torch.from_numpy(self.weights.copy()),
            'max_priority': self.max_priority,
            'beta': float(self._beta),
            'draws': self._draws,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self.values[:] = state['values'].numpy()
        self._weigh(np.arange(len(self.values)), state['weights'].numpy())
        self.max_priority, self._draws = state['max_priority'], state['draws']
        self._beta[...] = state['beta']


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
    if not (isinstance(given, np.ndarray) and given.dtype != object):
        given = np.array(list(given), dtype=object)
    given = given.reshape(-1)
    none = np.array([v is None for v in given]) if given.dtype == object else np.zeros(len(given), dtype=bool)
    if none.any() and not allow_none:
        raise ValueError(f'{where}: no priority for {label(int(none.argmax()))}')
    priority = np.where(none, 0.0, given).astype(np.float64)
    bad = np.flatnonzero(~((priority >= 0.0) & (priority < math.inf)))
    if len(bad):
        items = ', '.join(f'{label(k)}: {priority[k]}' for k in bad[:5].tolist())
        more = f' and {len(bad) - 5} more' if len(bad) > 5 else ''
        raise ValueError(f'{where}: priorities must be finite and at least 0, got {items}{more}')
    return np.where(none, np.nan, priority) if none.any() else priority
