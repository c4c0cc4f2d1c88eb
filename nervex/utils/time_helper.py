"""Measuring and limiting time."""

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch


class EasyTimer:
    """
    Overview:
        ``with timer: ...`` measures the block; ``timer.value`` is the time in seconds. With ``cuda`` it waits for the
        GPU at both ends.
    """

    def __init__(self, cuda: bool | None = None) -> None:
        self._cuda = torch.cuda.is_available() if cuda is None else cuda
        self.value = 0.0

    def __enter__(self) -> 'EasyTimer':
        self._start = self._now()
        return self

    def __exit__(self, *exc: object) -> None:
        self.value = self._now() - self._start

    def _now(self) -> float:
        if self._cuda:
            torch.cuda.synchronize()
        return time.perf_counter()


class TimeWrapper:
    """
    Overview:
        ``TimeWrapper.wrapper(function)`` gives a function that returns (result, seconds). Also ``start_time`` and
        ``end_time`` for a stretch of code.
    """

    _cuda = False
    _timer = EasyTimer(cuda=False)

    @classmethod
    def wrapper(cls, fn: Callable) -> Callable:
        """A function that also returns how long it took."""

        def timed(*args: Any, **kwargs: Any) -> tuple[Any, float]:
            with EasyTimer(cls._cuda and torch.cuda.is_available()) as timer:
                result = fn(*args, **kwargs)
            return result, timer.value

        return timed

    @classmethod
    def start_time(cls) -> None:
        """Begin to measure."""
        cls._timer = EasyTimer(cls._cuda and torch.cuda.is_available()).__enter__()

    @classmethod
    def end_time(cls) -> float:
        """Seconds since ``start_time``."""
        cls._timer.__exit__()
        return cls._timer.value


class TimeWrapperTime(TimeWrapper):
    """By the clock."""


class TimeWrapperCuda(TimeWrapper):
    """By the clock, after the GPU has finished."""

    _cuda = True


def build_time_helper(cfg: Any = None, wrapper_type: str | None = None) -> type[TimeWrapper]:
    """TimeWrapperTime ('time') or TimeWrapperCuda ('cuda'), by ``wrapper_type`` or ``cfg.common.time_wrapper_type``."""
    if wrapper_type is None and cfg is not None:
        wrapper_type = cfg['common']['time_wrapper_type']
    kinds = {'time': TimeWrapperTime, 'cuda': TimeWrapperCuda}
    if wrapper_type not in kinds:
        raise ValueError(f"wrapper_type is 'time' or 'cuda', got {wrapper_type!r}")
    return kinds[wrapper_type]


class WatchDog:
    """
    Overview:
        Raises TimeoutError, in the main thread that called ``start``, if ``stop`` does not come within ``timeout``
        seconds; a blocking call is cut short. It takes the process's timer of real time for that while.
    Interfaces:
        start, stop
    """

    def __init__(self, timeout: float = 1.0) -> None:
        if not timeout > 0:
            raise ValueError(f'timeout must be positive, got {timeout!r}')
        self._timeout = timeout
        self._before: Any = None  # who had the signal

    def start(self) -> None:
        """Begin to wait."""
        if self._before is not None:
            raise RuntimeError('the watchdog is running already; stop it first')
        self._before = signal.signal(signal.SIGALRM, self._expire)
        signal.setitimer(signal.ITIMER_REAL, self._timeout)

    def stop(self) -> None:
        """The work is done. Safe to call twice."""
        if self._before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            self._before = None

    def __enter__(self) -> 'WatchDog':
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _expire(self, number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f'not done within {self._timeout} s')
