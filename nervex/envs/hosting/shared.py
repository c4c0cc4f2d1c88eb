"""
Shared memory that has no name: it cannot be left behind.

A file descriptor is handed to the children; the kernel frees the memory when the last process that maps it is gone,
however it went. Nothing appears in /dev/shm.
"""

import mmap
import os
import tempfile
from multiprocessing import reduction
from typing import Any

import numpy as np


class SharedBlock:
    """
    Overview:
        Zeroed memory of ``nbytes`` that several processes map. ``send`` / ``receive`` hand it over a connection.
    """

    def __init__(self, nbytes: int, fd: int | None = None) -> None:
        self.nbytes = nbytes
        if fd is None:
            fd = _anonymous_file(nbytes)
        self._fd: Any = fd  # an int, until it is closed
        self.buffer = mmap.mmap(fd, nbytes)

    def send(self, connection: Any, pid: int) -> None:
        """Hand the memory to the process at the other end."""
        connection.send(self.nbytes)
        reduction.send_handle(connection, self._fd, pid)

    @classmethod
    def receive(cls, connection: Any) -> 'SharedBlock':
        """The other end of ``send``; the descriptor is not kept."""
        nbytes = connection.recv()
        block = cls(nbytes, reduction.recv_handle(connection))
        block.close()
        return block

    def close(self) -> None:
        """Forget the descriptor; the memory goes when the last array over it does."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class Control:
    """
    Overview:
        What main process and workers tell each other without a system call, one entry a worker. A worker runs command
        number ``asked[w]`` when it is greater than ``done[w]``.

        The order of the stores matters (data before ``done`` and ``asked``); x86 keeps it. Elsewhere nobody spins, and
        the pipes' system calls keep it.
    """

    asked: memoryview
    done: memoryview
    kind: memoryview
    slot: memoryview
    asleep: memoryview
    news: memoryview
    mail: memoryview
    resetting: memoryview
    FIELDS = ('asked', 'done', 'kind', 'slot', 'asleep', 'news', 'mail', 'resetting')

    def __init__(self, workers: int, envs: int, action: tuple[tuple[int, ...], Any] | None, buffer: Any) -> None:
        words = np.frombuffer(buffer, np.int64, len(self.FIELDS) * workers + 2)
        for place, name in enumerate(self.FIELDS):
            setattr(self, name, words[place * workers : (place + 1) * workers].data)
        self.main_waits, self.main_core = words[-2:-1].data, words[-1:].data
        start = words.nbytes
        self.chosen = np.frombuffer(buffer, np.uint8, envs, start)
        self.actions: np.ndarray | None = None
        if action is not None:
            shape, dtype = action
            start = _aligned(start + envs)
            count = envs * int(np.prod(shape))
            self.actions = np.frombuffer(buffer, dtype, count, start).reshape(envs, *shape)

    @classmethod
    def nbytes(cls, workers: int, envs: int, action: tuple[tuple[int, ...], Any] | None) -> int:
        """The bytes that it needs, a multiple of 64."""
        size = (len(cls.FIELDS) * workers + 2) * 8 + envs
        if action is not None:
            size = _aligned(size) + envs * int(np.prod(action[0])) * np.dtype(action[1]).itemsize
        return _aligned(size)


STEP_ALL, STEP_SOME, ASK = 1, 2, 3  # kinds of commands; ASK: a message waits in the pipe


def _aligned(size: int) -> int:
    return (size + 63) // 64 * 64


def _anonymous_file(nbytes: int) -> int:
    if hasattr(os, 'memfd_create'):
        fd = os.memfd_create('nervex-envs', os.MFD_CLOEXEC)
    else:  # not Linux: a temporary file that has lost its name
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, nbytes)
    return fd
