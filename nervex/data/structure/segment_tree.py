"""Segment trees: a running sum or minimum over any range, changed and searched in whole batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class SegmentTree:
    """
    Overview:
        ``capacity`` numbers and, over them, a binary tree of an operation on neighbours. Reading and writing take one
        index or an array of them. The capacity is rounded up to a power of two; unset places hold the operation's
        neutral element.
    Arguments:
        - capacity (:obj:`int`): number of places
        - operation (:obj:`Callable`): associative NumPy ufunc, e.g. ``np.add``
        - neutral_element (:obj:`float`): ``operation(x, neutral_element) == x``
    Interfaces:
        reduce, __getitem__, __setitem__
    """

    def __init__(self, capacity: int, operation: Callable = np.add, neutral_element: float | None = None) -> None:
        if not isinstance(capacity, (int, np.integer)) or capacity < 1:
            raise ValueError(f'{type(self).__name__}: capacity must be a number >= 1, got {capacity!r}')
        if neutral_element is None:
            known: dict[Callable, float] = {np.add: 0.0, np.minimum: np.inf, np.maximum: -np.inf}
            if operation not in known:
                raise ValueError(f'{type(self).__name__}: {operation} needs a neutral_element')
            neutral_element = known[operation]
        self.capacity = 1 << (int(capacity) - 1).bit_length()
        self.operation, self.neutral_element = operation, neutral_element
        self._tree = np.full(2 * self.capacity, neutral_element, dtype=np.float64)

    def reduce(self, start: int = 0, end: int | None = None) -> float:
        """The operation over the places from ``start`` to before ``end`` (None: all; negative: from the end)."""
        end = self.capacity if end is None else end
        end = end + self.capacity if end < 0 else end
        if not 0 <= start <= end <= self.capacity:
            raise IndexError(f'{type(self).__name__}: no range {start} .. {end} in {self.capacity} places')
        result = self.neutral_element
        start, end = start + self.capacity, end + self.capacity
        while start < end:
            if start & 1:
                result = self.operation(result, self._tree[start])
                start += 1
            if end & 1:
                end -= 1
                result = self.operation(result, self._tree[end])
            start, end = start >> 1, end >> 1
        return float(result)

    def __len__(self) -> int:
        return self.capacity

    def __setitem__(self, index: Any, value: Any) -> None:
        places = self._places(index)
        self._tree[places] = value
        nodes = np.unique(places)
        while len(nodes) and nodes[0] > 1:
            nodes = np.unique(nodes >> 1)
            self._tree[nodes] = self.operation(self._tree[2 * nodes], self._tree[2 * nodes + 1])

    def __getitem__(self, index: Any) -> Any:
        values = self._tree[self._places(index)]
        return values if np.ndim(index) else float(values[0])

    def _places(self, index: Any) -> np.ndarray:
        places = np.asarray(index).reshape(-1)
        places = np.flatnonzero(places) if places.dtype == bool else places.astype(np.int64)
        if len(places) and (places.min() < 0 or places.max() >= self.capacity):
            raise IndexError(f'{type(self).__name__}: index {index} outside of {self.capacity} places')
        return places + self.capacity


class SumSegmentTree(SegmentTree):
    """
    Overview:
        Sums, with a search for the place where the running sum passes a value.
    Interfaces:
        reduce, find_prefixsum_idx, __getitem__, __setitem__
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, np.add, 0.0)

    def find_prefixsum_idx(self, prefixsum: Any) -> Any:
        """
        Overview:
            The place i with ``sum(values[:i]) <= prefixsum < sum(values[:i + 1])``, for one number or an array.
        """
        left = np.asarray(prefixsum, dtype=np.float64)
        total = self._tree[1]
        if (left < 0).any() or (left > total + 1e-5).any():
            raise ValueError(f'find_prefixsum_idx: {prefixsum} is outside of 0 .. {total}, the sum of all values')
        left, nodes = left.reshape(-1).copy(), np.ones(left.size, dtype=np.int64)
        while nodes[0] < self.capacity if len(nodes) else False:
            nodes = 2 * nodes
            weight = self._tree[nodes]
            right = (weight <= left) & (self._tree[nodes + 1] > 0)
            left[right] -= weight[right]
            nodes += right
        places = nodes - self.capacity
        return places if np.ndim(prefixsum) else int(places[0])


class MinSegmentTree(SegmentTree):
    """The smallest value of any range; unset places hold infinity."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, np.minimum, np.inf)
