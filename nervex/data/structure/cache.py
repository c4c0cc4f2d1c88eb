"""Cache: collects items and hands them on in portions, from a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any


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
