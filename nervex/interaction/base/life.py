"""The beginning and the end that masters and slaves have."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any


class Life:
    """
    Overview:
        ``start`` once, ``shutdown`` once; a context manager. A subclass adds what begins and ends.
    """

    name: str

    def __init__(self) -> None:
        self._running = False
        self._ended = threading.Event()

    def start(self) -> Any:
        """Begin; answers itself."""
        if self._running or self._ended.is_set():
            raise RuntimeError(f'{self.name}: a {type(self).__name__.lower()} starts once')
        self._running = True
        return self

    def shutdown(self) -> None:
        """Take on nothing more."""
        self._running = False
        self._ended.set()

    def join(self) -> None:
        """Wait for ``shutdown``."""
        self._ended.wait()

    def close(self) -> None:
        """``shutdown`` and ``join``."""
        self.shutdown()
        self.join()

    def __enter__(self) -> Any:
        return self.start()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ping(self) -> bool:
        """Whether it runs."""
        return self._running
