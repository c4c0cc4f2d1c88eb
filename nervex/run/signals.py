"""Ctrl-C and SIGTERM end a run in order: between two rounds if that comes soon, never in the middle of an update."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

EXIT_INTERRUPT = 130


class StopSignals:
    """
    Overview:
        While it is installed, the first SIGINT or SIGTERM sets ``stop_wanted``, which the loop looks at between two
        rounds. If no round ends within ``patience_s``, KeyboardInterrupt is raised where the program is, but not in a
        held section. A second signal ends the process at once. Outside of the main thread nothing is installed.
    Interfaces:
        install, be_patient, close, hold, release, held, stop_wanted
    """

    def __init__(self, patience_s: float = 2.0) -> None:
        self._patience_s = patience_s
        self._old: dict[int, Any] = {}
        self._held = 0
        self._overdue = False
        self.stop_wanted = False

    def install(self) -> None:
        """Take over the signals."""
        if threading.current_thread() is threading.main_thread():
            self._old[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._out_of_patience)
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old[number] = signal.signal(number, self._stop)

    def be_patient(self) -> None:
        """The end is under way: from here on only a second signal cuts it short."""
        if self._old:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self._patience_s, self._overdue = 0.0, False  # 0 sets no timer

    def close(self) -> None:
        """Give the signals back to whoever had them."""
        if self._old:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()

    def hold(self) -> None:
        """Begin a section that must not be torn."""
        self._held += 1

    def release(self) -> None:
        """End it; an overdue stop is raised now."""
        self._held -= 1
        if self._overdue and not self._held:
            self._overdue = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """A section that must not be torn, as a context."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.stop_wanted:
            os._exit(EXIT_INTERRUPT)
        self.stop_wanted = True
        signal.setitimer(signal.ITIMER_REAL, self._patience_s)

    def _out_of_patience(self, number: int, frame: FrameType | None) -> None:
        if self._held:
            self._overdue = True
        else:
            raise KeyboardInterrupt
