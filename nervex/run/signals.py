"""Signals that end a run in order: between two rounds if that comes soon, never in the middle of an update."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
_seen: list[int] = []  # the signals that this process was told to end by


def exit_code() -> int:
    """128 and the number of the first of them, as a shell has it; that of Ctrl-C if there was none."""
    return 128 + (_seen[0] if _seen else signal.SIGINT)


def interrupt(number: int, frame: FrameType | None) -> None:
    """End by KeyboardInterrupt, wherever the program is."""
    _seen.append(number)
    raise KeyboardInterrupt


def take_over(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Let ``handler`` have all of ``STOPS``, but no SIGHUP that ``nohup`` has switched off; answers who had them."""
    taken = [n for n in STOPS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in taken}


class StopSignals:
    """
    Overview:
        While it is installed, the first signal of ``STOPS`` sets ``stop_wanted``, which the loop looks at between two
        rounds. If no round ends within ``patience_s``, KeyboardInterrupt is raised where the program is, but not in a
        section that must not be torn: that counts itself in ``holds``, and calls ``give_way`` at its end if the stop is
        ``overdue``. A second signal ends the process at once. Outside of the main thread nothing is installed.
    Interfaces:
        install, be_patient, close, held, give_way, stop_wanted
    """

    def __init__(self, patience_s: float = 2.0) -> None:
        self._patience_s = patience_s
        self._old: dict[int, Any] = {}
        self.holds = 0
        self.stop_wanted = self.overdue = False

    def install(self) -> None:
        """Take over the signals."""
        if threading.current_thread() is threading.main_thread():
            self._old = {signal.SIGALRM: signal.signal(signal.SIGALRM, self._out_of_patience), **take_over(self._stop)}

    def be_patient(self) -> None:
        """The end is under way: from here on only a second signal cuts it short."""
        if self._old:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self._patience_s, self.overdue = 0.0, False  # 0 sets no timer

    def close(self) -> None:
        """Give the signals back to whoever had them."""
        self.be_patient()
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """A section that must not be torn, as a context, in which no stop is overdue any more."""
        self.holds += 1
        try:
            yield
        finally:
            self.holds -= 1

    def give_way(self) -> None:
        """Raise a stop that is overdue, unless a section goes on."""
        if self.overdue and not self.holds:
            self.overdue = False
            raise KeyboardInterrupt

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.stop_wanted:
            os._exit(exit_code())
        self.stop_wanted = True
        _seen.append(number)
        signal.setitimer(signal.ITIMER_REAL, self._patience_s)

    def _out_of_patience(self, number: int, frame: FrameType | None) -> None:
        self.overdue = True
        self.give_way()
