"""Locks between threads, between processes, and around files."""

import contextlib
import fcntl
import multiprocessing
import os
import threading
from collections.abc import Iterator
from enum import Enum, unique


@unique
class LockContextType(Enum):
    """Who is kept apart: threads of one process, or processes with a common parent."""

    THREAD_LOCK = 1
    PROCESS_LOCK = 2


class LockContext:
    """A lock as a context manager, also with ``acquire`` and ``release``; whoever holds it may take it again."""

    def __init__(self, type_: LockContextType = LockContextType.THREAD_LOCK) -> None:
        if not isinstance(type_, LockContextType):
            raise ValueError(f'expected a LockContextType, got {type_!r}')
        self.lock = threading.RLock() if type_ == LockContextType.THREAD_LOCK else multiprocessing.RLock()
        self.acquire, self.release = self.lock.acquire, self.lock.release

    def __enter__(self) -> 'LockContext':
        self.lock.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.lock.release()


@contextlib.contextmanager
def get_file_lock(path: str) -> Iterator[None]:
    """
    Overview:
        Exclude all other users of ``get_file_lock(path)`` on this machine, also those without a common parent. The lock
        is on ``<path>.lock`` beside the file and ends with the process that holds it.
    """
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(f'{path}.lock', 'a+b') as f:  # closing it gives the lock back
        fcntl.flock(f, fcntl.LOCK_EX)
        yield
