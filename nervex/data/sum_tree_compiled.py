"""The loops of the sum tree, compiled by numba: those of ``sum_tree``, step by step."""

from __future__ import annotations

import numpy as np

from nervex.data.sum_tree import BELOW_ONE, MAX_WEIGHT, MIN_WEIGHT, WIDTH
from nervex.utils.errors import ExtraMissingError

try:
    from numba import njit
except ImportError as e:
    raise ExtraMissingError('compiled sum trees need numba: pip install nervex[fast]') from e


@njit(cache=True)
def refresh(tree, offsets, slots):
    """Add up what lies above changed leaves."""
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
def set_rows(tree, offsets, numbers, slots, weights, priority, priorities, least, oldest, newest):
    """New priorities of rows that are still there."""
    values, low = tree[0], tree[2]
    for k in range(slots.size):
        if not (priority[k] >= least and priority[k] < np.inf):
            return -2.0
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
def draw(tree, offsets, fractions, next_number, priorities, uses, slots, ratios, numbers, priority):
    """One leaf for each of n equal parts of the total, and what is known of its row."""
    values, prefix, low = tree[0], tree[1], tree[2]
    n, capacity = fractions.size, priorities.size
    lap = (next_number - 1) // capacity * capacity  # rows up to the newest are of this lap, those behind of the last
    smallest = np.inf
    for j in range(offsets[offsets.size - 1], low.size):
        smallest = min(smallest, low[j])
    total = prefix[prefix.size - 1]
    for k in range(n):
        target = (k + fractions[k]) * total / n
        node = 0
        for level in range(offsets.size - 1, -1, -1):
            base = offsets[level] + node * WIDTH
            target = min(target, prefix[base + WIDTH - 1] * BELOW_ONE)
            child = 0
            for j in range(WIDTH):
                child += prefix[base + j] <= target
            if child > 0:
                target -= prefix[base + child - 1]
            node = node * WIDTH + child
        slots[k] = node
        ratios[k] = smallest / values[node]
        number = lap + node
        numbers[k] = number if number < next_number else number - capacity
        priority[k] = priorities[node]
        uses[node] += 1
