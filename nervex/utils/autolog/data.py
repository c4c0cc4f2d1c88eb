"""The recent past of one value."""

import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

import torch

from nervex.utils.autolog.time_ctl import BaseTime

Span = tuple[int | float, int | float]


class TimeRangedData:
    """
    Overview:
        The values of the last ``expire`` time units with the times of their arrival, and the newest value however old
        it is. Tensors are kept as they are and become numbers when somebody reads them, all at once. Safe to use from
        threads.
    Interfaces:
        append, extend, current, ranges, values, ages, put_back
    """

    __slots__ = ('_items', '_lock', '_now', '_tensors', 'expire', 'time')

    def __init__(self, time_: BaseTime, expire: int | float) -> None:
        if isinstance(expire, bool) or not isinstance(expire, (int, float)):
            raise TypeError(f'expire must be a number, got {type(expire).__name__}')
        if not expire > 0:
            raise ValueError(f'expire must be greater than 0, got {expire}')
        self.time, self.expire = time_, expire
        self._now = time_.time
        self._items: deque[tuple[int | float, Any]] = deque()
        self._tensors = False
        self._lock = threading.Lock()

    def append(self, value: Any) -> None:
        """Record a value now."""
        now = self._now()
        items = self._items
        if items and now < items[-1][0]:
            raise ValueError(f'the time went back from {items[-1][0]} to {now}')
        with self._lock:
            items.append((now, value))
            if isinstance(value, torch.Tensor):
                self._tensors = True
            limit = now - self.expire
            while items[0][0] < limit:
                items.popleft()

    def extend(self, values: Iterable[Any]) -> None:
        """Record several values now."""
        for value in values:
            self.append(value)

    def current(self) -> Any:
        """The newest value; ValueError if there was none yet."""
        with self._lock:
            if not self._items:
                raise ValueError('no value was recorded yet')
            now, value = self._items[-1]
            if isinstance(value, torch.Tensor):
                value = value.item()
                self._items[-1] = (now, value)
            return value

    def ranges(self) -> list[tuple[Span, Any]]:
        """
        Overview:
            ``((begin, end), value)`` for every value that arrived in the window, in order: it was valid from its
            arrival to the next one, or till now. A value that arrived at this very moment counts from the next one
            on. Where the window holds none, the newest value, which is still valid, is given alone. Empty before the
            first value.
        """
        items, now, limit = self._snapshot()
        ends = [begin for begin, _ in items[1:]] + [now]
        found = [((begin, end), value) for (begin, value), end in zip(items, ends) if limit <= begin < now]
        if not found and items:
            begin, value = items[-1]
            found = [((max(begin, limit), now), value)]
        return found

    def values(self) -> list[Any]:
        """
        Overview:
            The values that arrived in the window; empty if there was none. A value of this very moment is included,
            and the window then begins just after its far end, so that ``expire`` ticks are never one more.
        """
        items, now, limit = self._snapshot()
        if items and items[-1][0] == now:
            return [value for begin, value in items if begin > limit]
        return [value for begin, value in items if begin >= limit]

    def ages(self) -> list[list]:
        """``[age, value]`` of all that is remembered, oldest first: how long before now it arrived."""
        items, now, _ = self._snapshot()
        return [[now - begin, value] for begin, value in items]

    def put_back(self, ages: Iterable[Iterable]) -> None:
        """Remember what ``ages`` told, counted from now, and nothing else."""
        now = self._now()
        with self._lock:
            self._items = deque((now - age, value) for age, value in ages)

    def __bool__(self) -> bool:
        return bool(self._items)

    def _snapshot(self) -> tuple[list[tuple[int | float, Any]], int | float, int | float]:
        now = self._now()
        with self._lock:
            if self._tensors:
                self._to_numbers()
            return list(self._items), now, now - self.expire

    def _to_numbers(self) -> None:
        """One transfer for all tensors, not one each."""
        where = [i for i, (_, value) in enumerate(self._items) if isinstance(value, torch.Tensor)]
        groups: dict[tuple, list[int]] = {}
        for i in where:
            value = self._items[i][1]
            groups.setdefault((value.device, value.dtype), []).append(i)
        for places in groups.values():
            numbers = torch.stack([self._items[i][1].reshape(()) for i in places]).tolist()
            for i, number in zip(places, numbers):
                self._items[i] = (self._items[i][0], number)
        self._tensors = False
