"""The parts that buffers are made of; the buffers themselves are imported when they are first used."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.utils.autolog import LoggedValue, Monitor, NaturalTime
from nervex.utils.lazy import lazy_exports

_NEUTRAL: dict[Callable, float] = {np.add: 0.0, np.minimum: np.inf, np.maximum: -np.inf}
_HOMES = {
    'nervex.data.replay_buffer': (
        'ListReplayBuffer NaiveReplayBuffer=ReplayBuffer PrioritizedBuffer=PrioritizedReplayBuffer '
        'PrioritizedReplayBuffer ReplayBuffer'
    ),
}
_OWN = 'Cache InTickMonitor MinSegmentTree NaturalMonitor OutTickMonitor RecordList SegmentTree SumSegmentTree'
__getattr__, __dir__, _LAZY = lazy_exports(__name__, _HOMES)
__all__ = [*_OWN.split(), *_LAZY]


class Cache:
    """
    Overview:
        Items that are pushed wait until there are ``maxlen`` of them, or until the first one has waited ``timeout``
        seconds; then the whole portion goes to ``consume``, in the order of arrival. An error in ``consume`` is raised
        by the next ``push_data``, or by ``close``.
    Arguments:
        - maxlen (:obj:`int`): items in a full portion
        - timeout (:obj:`float`): seconds after which a smaller portion goes too
        - consume (:obj:`Callable`): gets each portion as a list
    Interfaces:
        run, push_data, flush, close
    """

    def __init__(self, maxlen: int, timeout: float, consume: Callable[[list], Any]) -> None:
        self.maxlen, self.timeout = maxlen, timeout
        self._consume = consume
        self._items: list[Any] = []
        self._count, self._since = 0, 0.0
        self._wake = threading.Condition()
        self._busy = threading.Lock()  # a portion is on its way: the next one waits, so that the order stays
        self._error: BaseException | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Start the thread; a second call changes nothing."""
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._loop, name='buffer cache', daemon=True)
            self._thread.start()

    def push_data(self, data: Any, count: int = 1) -> None:
        """Take one item that counts as ``count``."""
        with self._wake:
            self._raise_error()
            if self._closed:
                raise RuntimeError('the cache is closed, nothing can be pushed any more')
            if not self._items:
                self._since = time.monotonic()
            self._items.append(data)
            self._count += count
            self._wake.notify()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def flush(self) -> None:
        """Hand on what there is now."""
        with self._busy:
            with self._wake:
                items, self._items, self._count = self._items, [], 0
            if items:
                self._consume(items)

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not self._closed and self._count < self.maxlen:
                    left = self._since + self.timeout - time.monotonic() if self._items else None
                    if left is not None and left <= 0:
                        break
                    self._wake.wait(left)
                if self._closed:
                    return
            try:
                self.flush()
            except Exception as e:  # raised again where the user notices it
                self._error = e

    def close(self) -> None:
        """End the thread and hand on the rest; may be called twice."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        self.flush()
        self._raise_error()


class NaturalMonitor(Monitor):
    """
    Overview:
        Rates over a window of seconds: ``avg['in_count']()`` and ``avg['out_count']()`` are rows per second.
    """

    in_count = LoggedValue(int)
    out_count = LoggedValue(int)

    def __init__(self, time_: NaturalTime, expire: float) -> None:
        super().__init__(time_, expire)
        for name in ('in_count', 'out_count'):
            self.register_attribute_value('avg', name, self._rate(name))

    def _rate(self, name: str) -> Callable[[], float]:
        def rate() -> float:
            age = self.current_time() - self._init_time
            return sum(self._logged[name].values()) / max(min(age, self.expire), 1e-9)

        return rate


class InTickMonitor(Monitor):
    """
    Overview:
        The last pushes: ``in_time`` is the time that one took, in seconds.
    """

    in_time = LoggedValue(float)


class OutTickMonitor(Monitor):
    """
    Overview:
        The last samples: seconds that one took, and the mean use count, priority and staleness of its rows; with
        ``avg``, ``max`` and ``min`` over the window.
    """

    out_time = LoggedValue(float)
    reuse = LoggedValue(float)
    priority = LoggedValue(float)
    staleness = LoggedValue(float)


class RecordList(list):
    """
    Overview:
        A list whose deleted and replaced items stay readable in ``removed``, in the order in which they went.
    Interfaces:
        removed, take_removed, and everything of list
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.removed: list[Any] = []

    def take_removed(self) -> list[Any]:
        """The removed items; they are forgotten here."""
        removed, self.removed = self.removed, []
        return removed

    def __setitem__(self, index: Any, value: Any) -> None:
        self.removed += self[index] if isinstance(index, slice) else [self[index]]
        super().__setitem__(index, value)

    def __delitem__(self, index: Any) -> None:
        self.removed += self[index] if isinstance(index, slice) else [self[index]]
        super().__delitem__(index)

    def pop(self, index: Any = -1) -> Any:
        """Remove an item and return it."""
        item = self[index]
        del self[index]
        return item

    def remove(self, value: Any) -> None:
        """Remove the first item that equals ``value``."""
        del self[self.index(value)]

    def clear(self) -> None:
        """Remove all items."""
        del self[:]


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
