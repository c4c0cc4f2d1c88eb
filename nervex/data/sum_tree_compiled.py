"""The sum tree's two loops, compiled by numba. Imported only where numba is installed."""

from __future__ import annotations

import numpy as np

from nervex.data.sum_tree import _BELOW_ONE, MAX_WEIGHT, MIN_WEIGHT, WIDTH, SumTree
from nervex.utils.errors import ExtraMissingError

try:
    from numba import njit
except ImportError as e:
    raise ExtraMissingError('compiled sum trees need numba: pip install nervex[fast]') from e


class CompiledSumTree(SumTree):
    """
    Overview:
        The same tree with compiled loops: the same numbers, several times faster. Results go into arrays that are made
        here: an array that compiled code returns costs four times as much as one that it is given.
    """

    def set(self, slots: np.ndarray, weights: np.ndarray | float) -> None:
        """Give these slots new weights; of equal slots the last one counts."""
        self._values[slots] = weights
        _refresh(self._tree, self._offsets, slots)

    def set_range(self, start: int, stop: int, weight: float) -> None:
        """Give the slots from ``start`` to before ``stop`` one weight."""
        _set_range(self._tree, self._offsets, start, stop, weight)

    def set_rows(
        self,
        numbers: np.ndarray,
        slots: np.ndarray,
        weights: np.ndarray,
        priority: np.ndarray,
        priorities: np.ndarray,
        oldest: int,
        newest: int,
    ) -> float:
        """New priorities and weights for the rows that are still in their slots, as in the plain version."""
        return _set_rows(self._tree, self._offsets, numbers, slots, weights, priority, priorities, oldest, newest)

    def draw(self, fractions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One slot from each of ``n`` equal intervals of the total weight, as in the plain version."""
        slots, ratios = np.empty(fractions.size, np.int64), np.empty(fractions.size, np.float32)
        _draw(self._tree, self._offsets, fractions, slots, ratios)
        return slots, ratios

    def draw_rows(
        self, fractions: np.ndarray, next_number: int, priorities: np.ndarray, uses: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """``draw`` for a ring, as in the plain version."""
        n = fractions.size
        slots, numbers = np.empty(n, np.int64), np.empty(n, np.int64)
        ratios, priority = np.empty(n, np.float32), np.empty(n)
        found = slots, ratios, numbers, priority
        _draw_rows(self._tree, self._offsets, fractions, next_number, priorities, uses, *found)
        return found

    @staticmethod
    def raised(priority: np.ndarray, eps: float) -> np.ndarray | None:
        """These priorities plus ``eps``, as in the plain version."""
        out = np.empty(priority.size)
        return out if _raise(priority, eps, out) else None


@njit(cache=True)
def _raise(priority, eps, out):
    for k in range(priority.size):
        value = priority[k]
        if not (value >= 0.0 and value < np.inf):
            return False
        out[k] = value + eps
    return True


@njit(cache=True)
def _draw_rows(tree, offsets, fractions, next_number, priorities, uses, slots, ratios, numbers, priority):
    _draw(tree, offsets, fractions, slots, ratios)
    capacity = priorities.size
    lap = (next_number - 1) // capacity * capacity  # rows up to the newest are of this lap, those behind of the last
    for k in range(slots.size):
        slot = slots[k]
        number = lap + slot
        numbers[k] = number if number < next_number else number - capacity
        priority[k] = priorities[slot]
        uses[slot] += 1


@njit(cache=True)
def _refresh(tree, offsets, slots):
    values, low = tree[0], tree[2]
    nodes = np.empty(slots.size, np.int64)
    count, last = 0, -1
    for slot in slots:
        weight = values[slot]
        low[slot] = weight if weight > 0.0 else np.inf
        node = slot // WIDTH
        if node != last:
            nodes[count] = node
            count += 1
            last = node
    _climb(tree, offsets, nodes, count)


@njit(cache=True)
def _set_range(tree, offsets, start, stop, weight):
    values, low = tree[0], tree[2]
    for slot in range(start, stop):
        values[slot] = weight
        low[slot] = weight if weight > 0.0 else np.inf
    first = start // WIDTH
    count = (stop - 1) // WIDTH - first + 1
    nodes = np.empty(count, np.int64)
    for k in range(count):
        nodes[k] = first + k
    _climb(tree, offsets, nodes, count)


@njit(cache=True)
def _set_rows(tree, offsets, numbers, slots, weights, priority, priorities, oldest, newest):
    values, low = tree[0], tree[2]
    nodes = np.empty(slots.size, np.int64)
    count, last, largest = 0, -1, -1.0
    for k in range(slots.size):
        slot = slots[k]
        number = numbers[k]
        if number < oldest or number > newest or number % priorities.size != slot or values[slot] <= 0.0:
            continue
        priorities[slot] = priority[k]
        values[slot] = low[slot] = min(max(weights[k], MIN_WEIGHT), MAX_WEIGHT)
        largest = max(largest, priority[k])
        node = slot // WIDTH
        if node != last:
            nodes[count] = node
            count += 1
            last = node
    if count:
        _climb(tree, offsets, nodes, count)
    return largest


@njit(cache=True)
def _climb(tree, offsets, nodes, count):
    """Recompute the given nodes of the first level, then those above them, up to the root."""
    values, prefix, low = tree[0], tree[1], tree[2]
    levels = offsets.size
    for level in range(levels):
        offset = offsets[level]
        kept, last = 0, -1
        for k in range(count):
            node = nodes[k]
            base = offset + node * WIDTH
            total, smallest = 0.0, np.inf
            for j in range(WIDTH):
                total += values[base + j]
                prefix[base + j] = total
                smallest = min(smallest, low[base + j])
            if level + 1 < levels:
                above = offsets[level + 1] + node
                values[above] = total
                low[above] = smallest
            parent = node // WIDTH
            if parent != last:
                nodes[kept] = parent
                kept += 1
                last = parent
        count = kept


@njit(cache=True)
def _draw(tree, offsets, fractions, slots, ratios):
    values, prefix, low = tree[0], tree[1], tree[2]
    n = fractions.size
    smallest = np.inf
    for j in range(offsets[offsets.size - 1], low.size):
        smallest = min(smallest, low[j])
    total = prefix[prefix.size - 1]
    for k in range(n):
        target = (k + fractions[k]) * total / n
        node = 0
        for level in range(offsets.size - 1, -1, -1):
            base = offsets[level] + node * WIDTH
            target = min(target, prefix[base + WIDTH - 1] * _BELOW_ONE)
            child = 0
            for j in range(WIDTH):
                child += prefix[base + j] <= target
            if child > 0:
                target -= prefix[base + child - 1]
            node = node * WIDTH + child
        slots[k] = node
        ratios[k] = smallest / values[node]
