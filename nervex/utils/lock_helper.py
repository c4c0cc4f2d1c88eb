"""Locks between threads, between processes, and around files."""

import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from enum import Enum, unique
from types import TracebackType


@unique
class LockContextType(Enum):
    """Who is kept apart: threads of one process, or processes with a common parent."""

    THREAD_LOCK = 1
    PROCESS_LOCK = 2


class LockContext:
    """
    Overview:
        A lock as a context manager; the thread lock may be taken again by the thread that holds it.
    Interfaces:
        acquire, release
    """

    def __init__(self, type_: LockContextType = LockContextType.THREAD_LOCK) -> None:
        if not isinstance(type_, LockContextType):
            raise ValueError(f'expected a LockContextType, got {type_!r}')
        self.lock = threading.RLock() if type_ == LockContextType.THREAD_LOCK else multiprocessing.RLock()

    def acquire(self) -> None:
        """Wait for the lock and take it."""
        self.lock.acquire()

    def release(self) -> None:
        """Give the lock back."""
        self.lock.release()

    def __enter__(self) -> 'LockContext':
        self.lock.acquire()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.lock.release()


@contextlib.contextmanager
def get_file_lock(path: str) -> Iterator[None]:
    """
    Overview:
        Exclude all other users of ``get_file_lock(path)`` on this machine, also those without a common parent. The lock
        is on ``<path>.lock`` beside the file and ends with the process that holds it.
    """
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(f'{path}.lock', 'a+b') as f:
        _lock_file(f.fileno())
        try:
            yield
        finally:
            _unlock_file(f.fileno())


if sys.platform != 'win32':
    import fcntl

    def _lock_file(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)

    def _unlock_file(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
else:
    import msvcrt

    def _lock_file(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)

    def _unlock_file(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
