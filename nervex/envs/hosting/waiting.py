"""How the two sides of the shared memory wait for each other: look for some microseconds, then sleep on a pipe."""

import ctypes
import os
import platform
import select
import sys
import time
from collections.abc import Callable

SPIN_SECONDS = 50e-6  # a wake-up over a pipe costs about 20-40 us: longer spinning costs more than it saves
LOOKS = 200  # looks between two looks at the clock, some 7 us
RECHECK_S = 1e-3
PART_EVERY = 8  # vain waits

_core = getattr(ctypes.CDLL(None), 'sched_getcpu', None) if sys.platform == 'linux' else None


def keeps_order() -> bool:
    """Whether others see the stores of this processor in their order; waiting awake relies on it."""
    return platform.machine().lower() in ('x86_64', 'amd64')


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


def spin_while(cells: memoryview, place: int, value: int, seconds: float = SPIN_SECONDS) -> bool:
    """Look while ``cells[place]`` is ``value``, for at most about ``seconds``; tells whether it has changed."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(LOOKS):
            if cells[place] != value:
                return True
    return False


def core() -> int:
    """The core that this thread runs on, counted from 1; 0 if the system does not tell."""
    return _core() + 1 if _core is not None else 0


class Apart:
    """
    Overview:
        Two processes that wait awake on the same core wait for each other in vain, and the scheduler may leave them
        there because each sleeps half of the time. The worker then moves to another core once; it stays free to run
        anywhere. Without this the benchmark row ``nervex.hybrid`` cartpole_n8 of env_bench has half the frames on two
        busy cores.
    """

    def __init__(self) -> None:
        self._vain = 0

    def check(self, other: int) -> None:
        """After a wait in vain; ``other`` is the core (``core()``) of the other process, 0 if it is not known."""
        self._vain += 1
        if self._vain % PART_EVERY == 0 and other and core() == other:
            allowed = os.sched_getaffinity(0)
            if len(allowed) > 1:
                os.sched_setaffinity(0, allowed - {other - 1} or allowed)
                os.sched_setaffinity(0, allowed)


class Sleeper:
    """
    Overview:
        One side's sleep: it raises its flag, so that the other side writes a byte when there is something to do. The
        other side may just have looked at the flag and not seen it; so the first sleep is short, and only when the flag
        has been up for a while is the sleep without end. A side whose flag is ``always`` up misses nothing and just
        reads.
    """

    def __init__(self, flag: memoryview, place: int, fd: int, always: bool = False) -> None:
        self._flag, self._place, self._fd, self._always = flag, place, fd, always
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN | select.POLLHUP)

    def until(self, arrived: Callable[[], bool]) -> bool:
        """Sleep until it has arrived; False if the other side has closed the pipe."""
        if self._always:
            while not arrived():
                if not os.read(self._fd, 4096):
                    return False
            return True
        self._flag[self._place] = 1
        timeout: float | None = RECHECK_S * 1000
        while not arrived():
            if self._poll.poll(timeout):
                if not os.read(self._fd, 4096):
                    return False
            else:
                timeout = None
        self._flag[self._place] = 0
        return True
