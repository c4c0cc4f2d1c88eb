"""
A flat, wide sum tree: draws and changes whole batches of weights at once.

The weights of the slots of a ring (row k lies in slot k modulo capacity) stand in nodes of eight, one level after the
other, first the leaves; ``tree`` has three values for each: its weight, the sum of the weights of its node up to and
including it, and the smallest positive weight below it. ``offsets`` says where the levels begin. A draw walks from the
root down, at each node counting the prefix sums that its target exceeds; a change recomputes the touched nodes from
their children, so that no rounding error is left behind, even by weights of 1e200.

The functions here are in NumPy; where numba is installed (``pip install nervex[fast]``) those of ``sum_tree_compiled``
do the same operations in the same order, to equal results: row ``cart_per_s32u`` of the data bench needs them (16 times
the samples of the NumPy loops). Results go into arrays that are given: one that compiled code returns costs four times
as much.
"""

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


def empty_tree(capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """``tree`` and ``offsets`` for slots that hold nothing."""
    nodes = [-(-capacity // WIDTH)]
    while nodes[-1] > 1:
        nodes.append(-(-nodes[-1] // WIDTH))
    ends = np.cumsum(np.array(nodes, dtype=np.int64) * WIDTH)
    tree = np.zeros((3, int(ends[-1])))
    tree[2] = np.inf
    return tree, np.concatenate([[0], ends[:-1]]).astype(np.int64)


def refresh(tree: np.ndarray, offsets: np.ndarray, slots: np.ndarray) -> None:
    """Add up what lies above slots with new weights."""
    values, prefix, low = tree
    children = slots if (slots[1:] > slots[:-1]).all() else np.unique(slots)
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
    """
    Overview:
        New priorities and weights (``numbers, slots, weights, priority``) for the rows that are still in their slots:
        those from ``oldest`` to ``newest`` whose slot has a weight.
    Arguments:
        - rows (:obj:`tuple`): the four, then ``priorities`` of all slots (is written to), the ``least`` priority that
          is allowed, ``oldest`` and ``newest``
    Returns:
        - largest (:obj:`float`): of the new priorities; -1 if no row was still there, -2 if nothing was done because a
          priority is too small, infinite or no number
    """
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
    """
    Overview:
        One slot from each of ``n`` equal intervals of the total weight, in ascending order, so that slot i is drawn
        with probability weight_i / total. Slots of weight 0 are never drawn.
    Arguments:
        - fractions (:obj:`np.ndarray`): ``n`` numbers in [0, 1), where in its interval each draw lies
        - rows (:obj:`tuple`): the number of the next row, ``priorities`` and ``uses`` (the draws are counted) of all
          slots; then ``n`` places for each of: slots, the smallest positive weight of all divided by that of the slot,
          numbers of the rows, their priorities
    """
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
def fastest() -> Any:
    """The module whose functions are to be used; a numba that does not fit the other packages is named once."""
    try:
        if importlib.util.find_spec('numba') is not None:
            return importlib.import_module('nervex.data.sum_tree_compiled')
    except (ImportError, RuntimeError, ValueError) as error:
        logger.warning('prioritized sampling goes on without numba, which does not work here: %s', error)
    return sys.modules[__name__]
