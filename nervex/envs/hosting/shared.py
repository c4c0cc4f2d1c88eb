"""
Shared memory that has no name: it cannot be left behind.

A file descriptor is handed to the children; the kernel frees the memory when the last process that maps it is gone,
however it went. Nothing appears in /dev/shm.
"""

import mmap
import os
import tempfile
from multiprocessing import reduction
from typing import Any, NamedTuple

import numpy as np

from nervex.envs.hosting.store import ALIGNMENT, BlockStore


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
        """The other end of ``send``; the descriptor is not kept, and a process that an env forks has no part in it."""
        nbytes = connection.recv()
        block = cls(nbytes, reduction.recv_handle(connection))
        block.close()
        if hasattr(mmap, 'MADV_DONTFORK'):
            block.buffer.madvise(mmap.MADV_DONTFORK)
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
        number ``asked[w]`` when it is greater than ``done[w]``; ``chosen`` says which envs a step is for.

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

    def __init__(self, workers: int, envs: int, buffer: Any) -> None:
        words = np.frombuffer(buffer, np.int64, len(self.FIELDS) * workers + 2)
        for place, name in enumerate(self.FIELDS):
            setattr(self, name, words[place * workers : (place + 1) * workers].data)
        self.main_waits, self.main_core = words[-2:-1].data, words[-1:].data
        self.chosen = np.frombuffer(buffer, np.uint8, envs, words.nbytes)

    @classmethod
    def nbytes(cls, workers: int, envs: int) -> int:
        """The bytes that it needs."""
        return (len(cls.FIELDS) * workers + 2) * 8 + envs


class Plan(NamedTuple):
    """
    Overview:
        What lies in the memory that steps write to.
    Arguments:
        - layout (:obj:`Any`): tree of Leafs
        - action (:obj:`tuple | None`): shape and dtype of an action; None: actions travel by pipe
        - by_pipe (:obj:`bool`): observations travel by pipe, too
    """

    layout: Any
    envs: int
    reward_size: int
    act_space: Any
    action: tuple[tuple[int, ...], Any] | None
    by_pipe: bool

    @property
    def nbytes(self) -> int:
        """The bytes that it needs."""
        return BlockStore.nbytes(self.layout, self.envs, self.reward_size) + self._action_bytes

    @property
    def _action_bytes(self) -> int:
        if self.action is None:
            return 0
        size = self.envs * int(np.prod(self.action[0])) * np.dtype(self.action[1]).itemsize
        return size + -size % ALIGNMENT

    def open(self, buffer: Any) -> tuple[BlockStore, np.ndarray | None]:
        """The store and the actions in that memory."""
        rest, actions = memoryview(buffer)[self._action_bytes :], None
        if self.action is not None:
            shape, dtype = self.action
            actions = np.frombuffer(buffer, dtype, self.envs * int(np.prod(shape))).reshape(self.envs, *shape)
        return BlockStore(self.layout, self.envs, self.reward_size, rest, self.by_pipe), actions


STEP_ALL, STEP_SOME, ASK = 1, 2, 3  # kinds of commands; ASK: a message waits in the pipe


def _anonymous_file(nbytes: int) -> int:
    if hasattr(os, 'memfd_create'):
        fd = os.memfd_create('nervex-envs', os.MFD_CLOEXEC)
    else:  # not Linux: a temporary file that has lost its name
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, nbytes)
    return fd
