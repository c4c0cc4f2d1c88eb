"""A flat, wide sum tree: draws and changes whole batches of weights at once."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from functools import lru_cache
from typing import Any

import numpy as np

logger = logging.getLogger(__name__)
WIDTH = 8  # children of a node
MIN_WEIGHT, MAX_WEIGHT = 1e-12, 1e290  # of a stored row: none is out of reach, and sums stay finite
_BELOW_ONE = 1.0 - 2.0**-52  # x * _BELOW_ONE is smaller than x, but hardly


class SumTree:
    """
    Overview:
        Non-negative weights with their prefix sums in nodes of eight. A draw walks from the root down, at each node
        counting the prefix sums that its target exceeds; a change recomputes the touched nodes from their children, so
        that no rounding error is left behind, even by weights of 1e200. What is written here in NumPy is the reference;
        where numba is installed (``pip install nervex[fast]``) the loops of ``sum_tree_compiled`` do the same
        operations in the same order, to equal results: row ``cart_per_s32u`` of the data bench needs them (16 times the
        samples of the NumPy loops). Results go into arrays that are made here: an array that compiled code returns
        costs four times as much as one that it is given.
    Arguments:
        - compiled (:obj:`bool | None`): None means compiled if possible
    Interfaces:
        set, set_rows, draw, draw_rows, total, smallest
    """

    def __init__(self, capacity: int, compiled: bool | None = None) -> None:
        sizes = [-(-capacity // WIDTH)]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // WIDTH))
        self.capacity = capacity
        self.compiled = _numba_installed() if compiled is None else compiled
        self._loops: Any = importlib.import_module('nervex.data.sum_tree_compiled') if self.compiled else None
        self._nodes = np.array(sizes, dtype=np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self._nodes * WIDTH)])[:-1].astype(np.int64)
        self._tree = np.zeros((3, int((self._nodes * WIDTH).sum())))
        self._values, self._prefix, self._low = self._tree  # a level's children one after the other; first the leaves
        # _prefix: sums of the values up to and including this one, node by node
        self._low[:] = np.inf  # smallest positive weight below a child
        self.weights = self._values[:capacity]  # the leaves

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self._prefix[-1])

    @property
    def smallest(self) -> float:
        """The smallest positive weight; inf if there is none."""
        return float(self._low[self._offsets[-1] :].min())

    def set(self, slots: np.ndarray, weights: np.ndarray | float) -> None:
        """Give these slots new weights; of equal slots the last one counts."""
        self._values[slots] = weights
        if self._loops is not None:
            self._loops.refresh(self._tree, self._offsets, slots)
        elif len(slots):
            self._refresh(np.unique(slots))

    def set_rows(
        self,
        numbers: np.ndarray,
        slots: np.ndarray,
        weights: np.ndarray,
        priority: np.ndarray,
        priorities: np.ndarray,
        least: float,
        oldest: int,
        newest: int,
    ) -> float:
        """
        Overview:
            New priorities and weights for the rows that are still in their slots: row k is in slot k modulo capacity,
            and there if ``oldest <= k <= newest`` and its slot has a weight.
        Arguments:
            - weights (:obj:`np.ndarray`): are brought between ``MIN_WEIGHT`` and ``MAX_WEIGHT``
            - priorities (:obj:`np.ndarray`): priority of every slot, is written to
            - least (:obj:`float`): no priority may be smaller
        Returns:
            - largest (:obj:`float`): the largest of the new priorities; -1 if no row was still there, -2 if nothing was
              done because a priority is too small, infinite or no number
        """
        if self._loops is not None:
            rows = numbers, slots, weights, priority
            return self._loops.set_rows(self._tree, self._offsets, *rows, priorities, least, oldest, newest)
        if not ((priority >= least) & (priority < np.inf)).all():
            return -2.0
        fits = (numbers >= oldest) & (numbers <= newest) & (numbers % self.capacity == slots)
        fits[fits] = self._values[slots[fits]] > 0.0
        slots, weights, priority = slots[fits], weights[fits], priority[fits]
        priorities[slots] = priority
        self.set(slots, bounded(weights))
        return float(priority.max(initial=-1.0))

    def _refresh(self, children: np.ndarray) -> None:
        """Recompute the nodes above the given leaves (ascending)."""
        self._low[children] = np.where(self._values[children] > 0, self._values[children], np.inf)
        for level, offset in enumerate(self._offsets.tolist()):
            nodes = children // WIDTH
            nodes = nodes[np.r_[True, nodes[1:] != nodes[:-1]]]
            columns = (offset + nodes * WIDTH)[:, None] + _COLUMNS
            sums = np.cumsum(self._values[columns], axis=1)
            self._prefix[columns] = sums
            if level + 1 < len(self._nodes):
                above = int(self._offsets[level + 1])
                self._values[above + nodes] = sums[:, -1]
                self._low[above + nodes] = self._low[columns].min(axis=1)
            children = nodes

    def draw(self, fractions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        Overview:
            One slot from each of ``n`` equal intervals of the total weight, so that slot i is drawn with probability
            weight_i / total. Slots of weight 0 are never drawn.
        Arguments:
            - fractions (:obj:`np.ndarray`): ``n`` numbers in [0, 1), where in its interval each draw lies
        Returns:
            - slots (:obj:`np.ndarray`): in ascending order
            - ratios (:obj:`np.ndarray`): the smallest positive weight of all, divided by that of each slot (float32)
        """
        n = len(fractions)
        if self._loops is not None:
            slots, ratios = np.empty(n, np.int64), np.empty(n, np.float32)
            self._loops.draw(self._tree, self._offsets, fractions, slots, ratios)
            return slots, ratios
        target = (np.arange(n) + fractions) * self.total / n
        node = np.zeros(n, dtype=np.int64)
        for offset in self._offsets[::-1].tolist():
            rows = self._prefix[(offset + node * WIDTH)[:, None] + _COLUMNS]
            target = np.minimum(target, rows[:, -1] * _BELOW_ONE)
            child = (rows <= target[:, None]).sum(axis=1)
            before = rows[np.arange(n), child - 1]
            target = np.where(child > 0, target - before, target)
            node = node * WIDTH + child
        return node, (self.smallest / self._values[node]).astype(np.float32)

    def draw_rows(
        self, fractions: np.ndarray, next_number: int, priorities: np.ndarray, uses: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """
        Overview:
            ``draw``, for a ring whose row k is in slot k modulo capacity; the draws are counted in ``uses``.
        Returns:
            - slots, ratios (:obj:`np.ndarray`): as those of ``draw``
            - numbers (:obj:`np.ndarray`): of the rows in these slots, when ``next_number`` is the next one
            - priority (:obj:`np.ndarray`): the rows' own of ``priorities``
        """
        if self._loops is not None:
            n = fractions.size
            found = np.empty(n, np.int64), np.empty(n, np.float32), np.empty(n, np.int64), np.empty(n)
            self._loops.draw_rows(self._tree, self._offsets, fractions, next_number, priorities, uses, *found)
            return found
        slots, ratios = self.draw(fractions)
        np.add.at(uses, slots, uses.dtype.type(1))
        newest = next_number - 1
        return slots, ratios, newest - (newest - slots) % self.capacity, priorities[slots]


_COLUMNS = np.arange(WIDTH)


def bounded(weights: np.ndarray) -> np.ndarray:
    """Weights that a stored row may have."""
    return np.minimum(np.maximum(weights, MIN_WEIGHT), MAX_WEIGHT)


@lru_cache(maxsize=1)
def _numba_installed() -> bool:
    """Whether numba is there and works; one that does not fit the other packages is named once."""
    try:
        if importlib.util.find_spec('numba') is None:
            return False
        importlib.import_module('nervex.data.sum_tree_compiled')
    except (ImportError, RuntimeError, ValueError) as error:
        logger.warning('prioritized sampling goes on without numba, which does not work here: %s', error)
        return False
    return True
