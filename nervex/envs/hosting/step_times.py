"""How long the envs of a host take for a step, measured over the first few hundred steps and then no more."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

WARM_UP, MEASURED = 20, 200  # calls of the loop


class StepTime(NamedTuple):
    """Seconds of one step of one env: mean and standard deviation; and the share of it that the processor works."""

    mean: float
    std: float
    busy: float


class StepTimes:
    """
    Overview:
        Stands before a host's loop until it has seen enough; then the host calls the loop itself again, so that
        measuring costs nothing in the long run.
    """

    def __init__(self) -> None:
        self._wall: list[float] = []
        self._cpu: list[float] = []
        self.result: StepTime | None = None

    def around(self, host: Any, loop: Callable) -> Callable:
        """The loop, measured as long as that is needed."""
        if self.result is not None:
            return loop

        def measured(slot: int, actions: Any, which: Any, events: Any) -> Any:
            wall, cpu = time.perf_counter(), time.thread_time()
            events = loop(slot, actions, which, events)
            self._wall.append((time.perf_counter() - wall) / len(which))
            self._cpu.append((time.thread_time() - cpu) / len(which))
            if len(self._wall) >= WARM_UP + MEASURED:
                self._finish()
                host._loop = loop
            return events

        return measured

    def _finish(self) -> None:
        wall, cpu = np.array(self._wall[WARM_UP:]), np.array(self._cpu[WARM_UP:])
        self.result = StepTime(float(wall.mean()), float(wall.std()), float(min(cpu.sum() / wall.sum(), 1.0)))
        self._wall, self._cpu = [], []
