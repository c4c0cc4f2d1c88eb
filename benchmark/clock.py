"""The stopwatch of the benchmarks: wall time, processor time, and what other processes used meanwhile."""

import os
import time
from collections.abc import Callable
from pathlib import Path


def _descendants(pid: int) -> list[int]:
    found = []
    for path in Path(f'/proc/{pid}/task').glob('*/children'):
        try:
            children = path.read_text().split()
        except (FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            continue
        for child in children:
            found += [int(child), *_descendants(int(child))]
    return found


def processor_seconds() -> float:
    """Processor time of this process and of its children, finished or (on Linux) still running."""
    total = time.process_time() + sum(os.times()[2:4])
    for pid in _descendants(os.getpid()):
        try:
            fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
        except FileNotFoundError:  # it has just ended: the parent's own children times have it once it is reaped
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
    return total


def _machine_busy_seconds() -> float:
    """Processor time that anybody used on this machine; 0 where /proc does not tell."""
    stat = Path('/proc/stat')
    if not stat.exists():
        return 0.0
    ticks = [int(x) for x in stat.read_text().split('\n', 1)[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf('SC_CLK_TCK')


class Clock:
    """Adds up wall and processor time of its ``with`` blocks. ``round`` may serve as a seed."""

    def __init__(self, round: int = 0) -> None:
        self.round = round
        self.wall_s = self.cpu_s = self.machine_s = 0.0

    def __enter__(self) -> 'Clock':
        self._start = _machine_busy_seconds(), processor_seconds(), time.perf_counter()
        return self

    def __exit__(self, *exc: object) -> None:
        wall, (machine_start, cpu_start, wall_start) = time.perf_counter(), self._start
        self.wall_s += wall - wall_start
        self.cpu_s += processor_seconds() - cpu_start
        self.machine_s += _machine_busy_seconds() - machine_start

    def repeat(self, function: Callable[[], object], seconds: float = 0.5) -> int:
        """Calls ``function`` for about ``seconds`` inside the clock, after finding out how often; returns the calls."""
        function()
        calls, elapsed = 1, 0.0
        while elapsed < seconds / 10:
            calls, start = calls * 2, time.perf_counter()
            for _ in range(calls):
                function()
            elapsed = time.perf_counter() - start
        calls = max(1, int(calls * seconds / elapsed))
        with self:
            for _ in range(calls):
                function()
        return calls
