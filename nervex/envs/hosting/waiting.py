"""How the two sides of the shared memory wait for each other: look, then yield, then sleep on a pipe."""
import os
import platform
import select
import time
from collections.abc import Callable

SPIN_SECONDS = 50e-6  # a wake-up over a pipe costs about 20-40 us: longer spinning costs more than it saves
LOOKS = 200           # looks before the first yield, some 7 us
RECHECK_S = 1e-3

_yield = getattr(os, 'sched_yield', lambda: time.sleep(0))


def may_spin(processes: int) -> bool:
    """Only with a core for each process, and only where the processor keeps the order of stores."""
    return processes <= cores() and platform.machine().lower() in ('x86_64', 'amd64')


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


def spin_while(cells: memoryview, place: int, value: int, seconds: float = SPIN_SECONDS) -> bool:
    """Look while ``cells[place]`` is ``value``, for at most about ``seconds``; tells whether it has changed."""
    for _ in range(LOOKS):
        if cells[place] != value:
            return True
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        _yield()
        if cells[place] != value:
            return True
    return False


class Sleeper:
    """
    Overview:
        One side's sleep: it raises its flag, so that the other side writes a byte when there is something to do. The
        other side may just have looked at the flag and not seen it; so the first sleep is short, and only when the flag
        has been up for a while is the sleep without end.
    """

    def __init__(self, flag: memoryview, place: int, fd: int) -> None:
        self._flag, self._place, self._fd = flag, place, fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN | select.POLLHUP)

    def until(self, arrived: Callable[[], bool]) -> bool:
        """Sleep until it has arrived; False if the other side has closed the pipe."""
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
