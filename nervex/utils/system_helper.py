"""Addresses, ports, names of tasks, the allocator, and threads that hand their error on."""

import ctypes
import os
import socket
import sys
import threading
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT, _LARGEST = 512 << 20, 32 << 20  # bytes; glibc takes no more than the second


def get_ip() -> str:
    """Address of this machine as others see it; the loopback address without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(('192.0.2.1', 9))  # nothing is sent: this only asks which address would be used
        except OSError:
            return '127.0.0.1'
        return s.getsockname()[0]


def get_pid() -> int:
    """Number of this process."""
    return os.getpid()


@lru_cache(maxsize=1)
def keep_freed_memory() -> bool:
    """
    Overview:
        Have the C library's allocator keep up to 512 MB that were freed; whether it does. Left to itself it gives the
        large tensors of an update back to the system, and the next update begins with a fault for each of their pages:
        a fifth of the time of row 'pong_ppo' of benchmark/atari_bench.py. No number changes by it. Only glibc is told;
        whoever has set it by variables (MALLOC_..., GLIBC_TUNABLES) keeps that.
    """
    chosen = any(name.startswith(('MALLOC_', 'GLIBC_TUNABLES')) for name in os.environ)
    if chosen or sys.platform != 'linux' or not hasattr(ctypes.CDLL(None), 'gnu_get_libc_version'):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST) and mallopt(_M_TRIM_THRESHOLD, _KEPT))


def get_task_uid() -> str:
    """A name for a task that no other has."""
    return f'task_{uuid.uuid4().hex}'


def find_free_port(host: str = '') -> int:
    """A port that is free at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.bind((host, 0))
        return s.getsockname()[1]


class PropagatingThread(threading.Thread):
    """A thread whose ``join`` returns the result of its target, or raises the error that ended it."""

    def __init__(self, group: None = None, target: Callable[..., Any] | None = None, **kwargs: Any) -> None:
        self.error: BaseException | None = None
        self.result: Any = None

        def keeping(*args: Any, **more: Any) -> None:
            try:
                self.result = target(*args, **more) if target is not None else None
            except BaseException as e:  # raised again by join
                self.error = e

        super().__init__(group, keeping, **kwargs)

    def join(self, timeout: float | None = None) -> Any:
        """Wait; the result, or the error. After a timeout, while the thread still runs, None."""
        super().join(timeout)
        if self.error is not None:
            raise self.error
        return self.result
