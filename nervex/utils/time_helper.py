"""Measuring and limiting time."""

import ctypes
import threading
import time
from collections.abc import Callable
from types import TracebackType
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

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
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
        cls._timer.__exit__(None, None, None)
        return cls._timer.value


class TimeWrapperTime(TimeWrapper):
    """By the clock."""


class TimeWrapperCuda(TimeWrapper):
    """By the clock, after the GPU has finished."""

    _cuda = True


def build_time_helper(cfg: Any = None, wrapper_type: str | None = None) -> type[TimeWrapper]:
    """
    Overview:
        TimeWrapperTime ('time') or TimeWrapperCuda ('cuda'), by ``wrapper_type`` or by
        ``cfg.common.time_wrapper_type``.
    """
    if wrapper_type is None and cfg is not None:
        wrapper_type = cfg['common']['time_wrapper_type']
    kinds = {'time': TimeWrapperTime, 'cuda': TimeWrapperCuda}
    if wrapper_type not in kinds:
        raise ValueError(f"wrapper_type is 'time' or 'cuda', got {wrapper_type!r}")
    return kinds[wrapper_type]


class WatchDog:
    """
    Overview:
        Raises TimeoutError in the thread that called ``start`` if ``stop`` does not come within ``timeout`` seconds.
        Another thread keeps the time: fractions of a second work, in any thread and on any system. A call that blocks
        outside of Python is not cut short, the error comes when it returns: give pipes and queues timeouts of their
        own.
    Interfaces:
        start, stop
    """

    def __init__(self, timeout: float = 1.0) -> None:
        if not timeout > 0:
            raise ValueError(f'timeout must be positive, got {timeout!r}')
        self._timeout = timeout
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to wait."""
        if self._timer is not None:
            raise RuntimeError('the watchdog is running already; stop it first')
        self._expired = self._delivered = False
        self._thread = threading.get_ident()
        self._timer = threading.Timer(self._timeout, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """The work is done; TimeoutError if that was too late and nobody was told yet. Safe to call twice."""
        with self._lock:
            timer, self._timer = self._timer, None
            if timer is None:
                return
            timer.cancel()
            if not self._expired or self._delivered:
                return
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), None)
        raise TimeoutError(self._text())

    def __enter__(self) -> 'WatchDog':
        self.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _expire(self) -> None:
        dog = self

        class Expired(TimeoutError):
            """Made when it arrives in the thread, which is how the watchdog knows that it did."""

            def __init__(self) -> None:
                super().__init__(dog._text())
                dog._delivered = True

        with self._lock:
            if self._timer is not None:
                self._expired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(Expired))

    def _text(self) -> str:
        return f'not done within {self._timeout} s'
