"""A flat, wide sum tree: draws and changes whole batches of weights at once."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from functools import lru_cache
from typing import Any

import numpy as np

logger = logging.getLogger(__name__)
WIDTH = 8  # children of a node
MIN_WEIGHT, MAX_WEIGHT = 1e-12, 1e290  # of a stored row: none is out of reach, and sums stay finite
BELOW_ONE = 1.0 - 2.0**-52  # x * BELOW_ONE is smaller than x, but hardly
_COLUMNS = np.arange(WIDTH)


class SumTree:
    """
    Overview:
        The weights of the slots of a ring (row k lies in slot k modulo capacity) with their prefix sums in nodes of
        eight. A draw walks from the root down, at each node counting the prefix sums that its target exceeds; a change
        recomputes the touched nodes from their children, so that no rounding error is left behind, even by weights of
        1e200. The loops are the functions of this module, in NumPy; where numba is installed (``pip install
        nervex[fast]``) those of ``sum_tree_compiled`` do the same operations in the same order, to equal results: row
        ``cart_per_s32u`` of the data bench needs them (16 times the samples of the NumPy loops). Results go into arrays
        that are made here: an array that compiled code returns costs four times as much as one that it is given.
    Arguments:
        - compiled (:obj:`bool | None`): None means compiled if possible
    Interfaces:
        set, set_rows, draw, total, smallest
    """

    def __init__(self, capacity: int, compiled: bool | None = None) -> None:
        sizes = [-(-capacity // WIDTH)]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // WIDTH))
        self.compiled = _numba_installed() if compiled is None else compiled
        here = sys.modules[__name__]
        self._loops: Any = importlib.import_module('nervex.data.sum_tree_compiled') if self.compiled else here
        nodes = np.array(sizes, dtype=np.int64) * WIDTH
        self._offsets = np.concatenate([[0], np.cumsum(nodes)])[:-1].astype(np.int64)
        # a level's children one after the other, first the leaves: values, prefix sums (up to and including each, node
        # by node), and the smallest positive weights below
        self._tree = np.zeros((3, int(nodes.sum())))
        self._tree[2] = np.inf
        self.weights = self._tree[0, :capacity]  # the leaves

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self._tree[1, -1])

    @property
    def smallest(self) -> float:
        """The smallest positive weight; inf if there is none."""
        return float(self._tree[2, self._offsets[-1] :].min())

    def set(self, slots: np.ndarray, weights: np.ndarray | float) -> None:
        """Give these slots new weights; of equal slots the last one counts."""
        self.weights[slots] = weights
        self._loops.refresh(self._tree, self._offsets, slots)

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
            New priorities and weights for the rows that are still in their slots: those from ``oldest`` to ``newest``
            whose slot has a weight.
        Arguments:
            - weights (:obj:`np.ndarray`): are brought between ``MIN_WEIGHT`` and ``MAX_WEIGHT``
            - priorities (:obj:`np.ndarray`): priority of every slot, is written to
            - least (:obj:`float`): no priority may be smaller
        Returns:
            - largest (:obj:`float`): the largest of the new priorities; -1 if no row was still there, -2 if nothing was
              done because a priority is too small, infinite or no number
        """
        rows = numbers, slots, weights, priority
        return self._loops.set_rows(self._tree, self._offsets, *rows, priorities, least, oldest, newest)

    def draw(
        self, fractions: np.ndarray, next_number: int, priorities: np.ndarray, uses: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """
        Overview:
            One slot from each of ``n`` equal intervals of the total weight, so that slot i is drawn with probability
            weight_i / total. Slots of weight 0 are never drawn. The draws are counted in ``uses``.
        Arguments:
            - fractions (:obj:`np.ndarray`): ``n`` numbers in [0, 1), where in its interval each draw lies
        Returns:
            - slots (:obj:`np.ndarray`): in ascending order
            - ratios (:obj:`np.ndarray`): the smallest positive weight of all, divided by that of each slot (float32)
            - numbers (:obj:`np.ndarray`): of the rows in these slots, when ``next_number`` is the next one
            - priority (:obj:`np.ndarray`): the rows' own of ``priorities``
        """
        n = fractions.size
        found = np.empty(n, np.int64), np.empty(n, np.float32), np.empty(n, np.int64), np.empty(n)
        self._loops.draw(self._tree, self._offsets, fractions, next_number, priorities, uses, *found)
        return found


def refresh(tree: np.ndarray, offsets: np.ndarray, slots: np.ndarray) -> None:
    """Add up what lies above changed leaves."""
    values, prefix, low = tree
    children = np.unique(slots)
    low[children] = np.where(values[children] > 0, values[children], np.inf)
    for offset, above in zip(offsets, [*offsets[1:], None] if len(children) else ()):
        nodes = children // WIDTH
        nodes = nodes[np.r_[True, nodes[1:] != nodes[:-1]]]
        columns = (offset + nodes * WIDTH)[:, None] + _COLUMNS
        prefix[columns] = sums = np.cumsum(values[columns], axis=1)
        if above is not None:
            values[above + nodes] = sums[:, -1]
            low[above + nodes] = low[columns].min(axis=1)
        children = nodes


def set_rows(tree: np.ndarray, offsets: np.ndarray, *rows: Any) -> float:
    """New priorities of rows that are still there."""
    numbers, slots, weights, priority, priorities, least, oldest, newest = rows
    if not ((priority >= least) & (priority < np.inf)).all():
        return -2.0
    fits = (numbers >= oldest) & (numbers <= newest) & (numbers % priorities.size == slots)
    fits[fits] = tree[0, slots[fits]] > 0.0
    slots, weights, priority = slots[fits], weights[fits], priority[fits]
    priorities[slots] = priority
    tree[0, slots] = bounded(weights)
    refresh(tree, offsets, slots)
    return float(priority.max(initial=-1.0))


def draw(tree: np.ndarray, offsets: np.ndarray, fractions: np.ndarray, *rows: Any) -> None:
    """One leaf for each of n equal parts of the total, and what is known of its row."""
    next_number, priorities, uses, slots, ratios, numbers, priority = rows
    (values, prefix, low), n = tree, fractions.size
    target = (np.arange(n) + fractions) * prefix[-1] / n
    node = np.zeros(n, dtype=np.int64)
    for offset in offsets[::-1]:
        sums = prefix[(offset + node * WIDTH)[:, None] + _COLUMNS]
        target = np.minimum(target, sums[:, -1] * BELOW_ONE)
        child = (sums <= target[:, None]).sum(axis=1)
        target = np.where(child > 0, target - sums[np.arange(n), child - 1], target)
        node = node * WIDTH + child
    slots[:] = node
    ratios[:] = low[offsets[-1] :].min() / values[node]
    numbers[:] = next_number - 1 - (next_number - 1 - node) % priorities.size
    priority[:] = priorities[node]
    np.add.at(uses, node, uses.dtype.type(1))


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
