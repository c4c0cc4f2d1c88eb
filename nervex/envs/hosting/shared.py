"""
Shared memory that has no name: it cannot be left behind.

A file descriptor is handed to the children; the kernel frees the memory when the last process that maps it is gone,
however it went. Nothing appears in /dev/shm.
"""

import mmap
import os
import tempfile
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nervex.envs.hosting.actions import ActionRows
from nervex.envs.hosting.block import BlockStore, Memory

STEP_ALL, STEP_SOME, ASK = 1, 2, 3  # kinds of commands; ASK: a message waits in the pipe
Made = TypeVar('Made')


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

    @classmethod
    def holding(cls, make: Callable[[Memory], Made]) -> 'tuple[SharedBlock, Made]':
        """What is made from a Memory, in a block of its size; it is made once before to see how much that is."""
        trial = Memory()
        make(trial)
        block = cls(trial.used)
        return block, make(block.memory)

    @property
    def memory(self) -> Memory:
        """To cut the same arrays from it in every process."""
        return Memory(self.buffer)

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

    def __init__(self, workers: int, envs: int, memory: Memory) -> None:
        words = memory.array((len(self.FIELDS) * workers + 2,), np.int64)
        for place, name in enumerate(self.FIELDS):
            setattr(self, name, words[place * workers : (place + 1) * workers].data)
        self.main_waits, self.main_core = words[-2:-1].data, words[-1:].data
        self.chosen = memory.array((envs,), np.uint8)


class Plan(NamedTuple):
    """
    Overview:
        What lies in the memory that steps write to.
    Arguments:
        - layout (:obj:`Any`): tree of Leafs
        - by_pipe (:obj:`bool`): observations travel by pipe
    """

    layout: Any
    envs: int
    reward_size: int
    act_space: Any
    by_pipe: bool

    def open(self, memory: Memory) -> tuple[BlockStore, ActionRows, np.ndarray | None]:
        """The store, and the actions with what splits them; None: they travel by pipe."""
        store = BlockStore(self.layout, self.envs, self.reward_size, memory, self.by_pipe)
        rows = ActionRows(self.act_space)
        form = rows.memory()
        return store, rows, None if form is None else memory.array((self.envs, *form[0]), form[1])


def _anonymous_file(nbytes: int) -> int:
    if hasattr(os, 'memfd_create'):
        fd = os.memfd_create('nervex-envs', os.MFD_CLOEXEC)
    else:  # not Linux: a temporary file that has lost its name
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, nbytes)
    return fd
