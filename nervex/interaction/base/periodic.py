"""A function that is called again and again, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Periodic:
    """
    Overview:
        Calls ``function`` every ``span_s`` seconds until it answers False or ``stop`` is called, also from within.
    """

    def __init__(self, function: Callable[[], bool], span_s: float, name: str) -> None:
        if span_s <= 0:
            raise ValueError(f'{name}: got a span of {span_s} s, must be positive')
        self._function, self._span_s = function, span_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; the first call comes after one span."""
        self._thread.start()

    def stop(self) -> None:
        """No call begins after this; waits for the running one, unless this is that call."""
        self._stopped.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._span_s):
            if not self._function():
                return
