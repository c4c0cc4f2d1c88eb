"""Segment trees: a running sum or minimum over any range, changed and searched in whole batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_NEUTRAL: dict[Callable, float] = {np.add: 0.0, np.minimum: np.inf, np.maximum: -np.inf}


class SegmentTree:
    """
    Overview:
        ``capacity`` numbers with an operation over any range of them. Reading and writing take one index or an array of
        them. The capacity is rounded up to a power of two; unset places hold the operation's neutral element. The
        numbers lie in one array: up to some 100,000 of them NumPy's loop over a range takes no longer than a walk
        through a tree. What buffers draw from is ``nervex.data.sum_tree``.
    Arguments:
        - capacity (:obj:`int`): number of places
        - operation (:obj:`Callable`): associative NumPy ufunc, e.g. ``np.add``
        - neutral_element (:obj:`float`): ``operation(x, neutral_element) == x``
    Interfaces:
        reduce, __getitem__, __setitem__
    """

    def __init__(self, capacity: int, operation: Any = np.add, neutral_element: float | None = None) -> None:
        if not isinstance(capacity, (int, np.integer)) or capacity < 1:
            raise ValueError(f'{type(self).__name__}: capacity must be a number >= 1, got {capacity!r}')
        neutral_element = _NEUTRAL.get(operation) if neutral_element is None else neutral_element
        if neutral_element is None:
            raise ValueError(f'{type(self).__name__}: {operation} needs a neutral_element')
        self.capacity = 1 << (int(capacity) - 1).bit_length()
        self.operation, self.neutral_element = operation, neutral_element
        self._values = np.full(self.capacity, neutral_element, dtype=np.float64)

    def reduce(self, start: int = 0, end: int | None = None) -> float:
        """The operation over the places from ``start`` to before ``end`` (None: all; negative: from the end)."""
        end = self.capacity if end is None else end
        end = end + self.capacity if end < 0 else end
        if not 0 <= start <= end <= self.capacity:
            raise IndexError(f'{type(self).__name__}: no range {start} .. {end} in {self.capacity} places')
        return float(self.operation.reduce(self._values[start:end], initial=self.neutral_element))

    def __len__(self) -> int:
        return self.capacity

    def __setitem__(self, index: Any, value: Any) -> None:
        self._values[self._places(index)] = value

    def __getitem__(self, index: Any) -> Any:
        values = self._values[self._places(index)]
        return values if np.ndim(index) else float(values[0])

    def _places(self, index: Any) -> np.ndarray:
        places = np.asarray(index).reshape(-1)
        places = np.flatnonzero(places) if places.dtype == bool else places.astype(np.int64)
        if len(places) and (places.min() < 0 or places.max() >= self.capacity):
            raise IndexError(f'{type(self).__name__}: index {index} outside of {self.capacity} places')
        return places


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
        wanted, sums = np.asarray(prefixsum, dtype=np.float64), np.cumsum(self._values)
        if (wanted < 0).any() or (wanted > sums[-1] + 1e-5).any():
            raise ValueError(f'find_prefixsum_idx: {prefixsum} is outside of 0 .. {sums[-1]}, the sum of all values')
        last = np.searchsorted(sums, sums[-1])  # of the places that hold something
        places = np.minimum(np.searchsorted(sums, wanted, side='right'), last)
        return places if wanted.ndim else int(places)


class MinSegmentTree(SegmentTree):
    """The smallest value of any range; unset places hold infinity."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, np.minimum, np.inf)
