"""Ctrl-C and SIGTERM end a run in order: never in the middle of an update or of a file."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

EXIT_INTERRUPT = 130


class StopSignals:
    """
    Overview:
        While it is installed, the first SIGINT or SIGTERM raises KeyboardInterrupt - at once, or when the part of the
        work that must not be torn is done - and a second one ends the process. Outside of the main thread nothing is
        installed.
    Interfaces:
        install, close, hold, release
    """

    def __init__(self) -> None:
        self._old: dict[int, Any] = {}
        self._guarded = False
        self._pending = False
        self._seen = 0

    def install(self) -> None:
        """Take over the two signals."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old[number] = signal.signal(number, self._handle)

    def close(self) -> None:
        """Give the signals back to whoever had them."""
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()

    def hold(self) -> None:
        """From here on a signal waits."""
        self._guarded = True

    def release(self) -> None:
        """A signal that waited raises now."""
        self._guarded = False
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._seen += 1
        if self._seen > 1:
            os._exit(EXIT_INTERRUPT)
        if self._guarded:
            self._pending = True
        else:
            raise KeyboardInterrupt
