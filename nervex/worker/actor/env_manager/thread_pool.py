"""Envs in threads of this process, behind the interface of the subprocess pool."""

import itertools
import logging
import multiprocessing
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.envs.hosting.layout import copy_row
from nervex.envs.hosting.shared import Control
from nervex.envs.hosting.store import BlockStore
from nervex.envs.hosting.worker import Worker, WorkerSetup
from nervex.worker.actor.env_manager.worker_pool import WorkerLost, WorkerPool

logger = logging.getLogger(__name__)

_NO_FD = itertools.count(1 << 30)  # stands for a file descriptor where a thread has none


class QueuePipe:
    """One end of a pipe between threads: nothing is pickled."""

    def __init__(self, incoming: queue.Queue, outgoing: queue.Queue) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._peeked: list[Any] = []

    def send(self, message: Any) -> None:
        self._outgoing.put(message)

    send_bytes = send

    def poll(self, timeout: float) -> bool:
        """Whether something waits, within ``timeout`` seconds."""
        if not self._peeked:
            try:
                self._peeked.append(self._incoming.get(timeout=timeout) if timeout else self._incoming.get_nowait())
            except queue.Empty:
                return False
        return True

    def recv(self) -> Any:
        message = self._peeked.pop() if self._peeked else self._incoming.get()
        if message is _CLOSED:
            raise EOFError
        return message

    def close(self) -> None:
        self._outgoing.put(_CLOSED)

    def fileno(self) -> int:
        return -1


_CLOSED = object()


class ThreadWorker(Worker):
    """
    Overview:
        The loop of a thread. It writes into memory of its own and makes it visible when a command is done, so that a
        thread that was given up (threads cannot be ended) can never write where its successor does.
    """

    def __init__(self, setup: WorkerSetup, pipe: QueuePipe, wake_fd: int, ready_fd: int, gate: threading.Lock) -> None:
        super().__init__(setup, pipe, wake_fd, ready_fd)
        self.gate, self.given_up = gate, False

    @staticmethod
    def dump(answer: Any) -> Any:
        return answer

    def build(self) -> bool:
        built = super().build()
        return built and not self.given_up

    def _map(self, plan: dict) -> None:
        own = BlockStore(plan['layout'], self.host.num, plan['reward_size'])
        self._shown = plan['store']
        self._attach(plan, plan['control'], own, 0)

    def _publish(self) -> None:
        low, high, slot = self._low, self._low + self.host.num, self._control.slot[self._w]
        own, shown = self.host.store, self._shown
        with self.gate:
            if self.given_up:
                raise EOFError
            if own is None:  # the envs were closed
                return
            for k in range(self.host.num):
                copy_row(shown.rows[slot][low + k], own.rows[slot][k])
                copy_row(shown.final_rows[low + k], own.final_rows[k])
            shown.reward[slot][low:high] = own.reward[slot]
            for name in ('done', 'truncated', 'episode_return', 'episode_length'):
                getattr(shown, name)[low:high] = getattr(own, name)

    def _tell(self) -> None:
        with self.gate:  # the descriptor may belong to somebody else once this thread was given up
            if self.given_up:
                raise EOFError
            super()._tell()


class ThreadHandle:
    """What a process is for the pool, for a thread: ``kill`` gives it up."""

    exitcode, pid = None, None

    def __init__(self, worker: ThreadWorker, name: str, wake: Any, ended: Callable[[], None]) -> None:
        self.worker, self.sentinel, self._wake, self._ended = worker, next(_NO_FD), wake, ended
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def kill(self) -> None:
        with self.worker.gate:
            self.worker.given_up = True

    def join(self, timeout: float | None = None) -> None:
        """Waited for only a moment: it may hang, which may be why it is given up."""
        self._thread.join(0.1)

    def close(self) -> None:
        """Nothing is kept."""

    def _run(self) -> None:
        worker = self.worker
        try:
            if worker.build():
                worker.run()
        except EOFError:
            logger.debug('%s ends: it is not wanted any more', self._thread.name)
        finally:
            with worker.gate:
                if not worker.given_up:
                    self._ended()
            worker.host.close()
            self._wake.close()


class ThreadPool(WorkerPool):
    """
    Overview:
        Each worker is a thread. For envs that wait most of the time, such as clients of a game server; a step that
        computes in Python holds up all the others.
    """

    def __init__(self, env_num: int, slices: Any, setup: Any) -> None:
        super().__init__(env_num, slices, setup, None, spin_allowed=False)
        self._gate = threading.Lock()

    def start(self, w: int, describe: bool) -> None:
        worker, there, back = self.workers[w], queue.Queue(), queue.Queue()
        wake_end, worker.wake = multiprocessing.Pipe(duplex=False)
        worker.pipe, worker.wake_fd = QueuePipe(back, there), worker.wake.fileno()
        setup = self._setup(w, worker.ids, describe)
        thread = ThreadWorker(setup, QueuePipe(there, back), wake_end.fileno(), self._ready_end.fileno(), self._gate)
        worker.process = ThreadHandle(thread, f'nervex-envs-{worker.ids.start}', wake_end, lambda: self._note_end(w))
        worker.process.start()

    def _note_end(self, w: int) -> None:
        """Called in a thread that ends by itself."""
        self._ended.add(w)
        os.write(self._ready_end.fileno(), w.to_bytes(2, 'little'))

    def share(self, layout: Any, reward_size: int, action: Any, act_space: Any, by_pipe: bool) -> BlockStore:
        envs, workers = self._env_num, len(self.workers)
        self.control = Control(workers, envs, action, np.zeros(Control.nbytes(workers, envs, action), np.uint8))
        self.control.main_waits[0] = 1
        store = BlockStore(layout, envs, reward_size)
        self._plan = dict(
            layout=layout,
            reward_size=reward_size,
            act_space=act_space,
            private=False,
            by_pipe=False,
            control=self.control,
            store=store,
        )
        self._block = _Nothing()
        return store

    def watch(self, w: int, yes: bool) -> None:
        """Nothing to watch: ``arrivals`` looks soon enough."""

    def arrivals(self, timeout: float) -> float:
        return super().arrivals(min(timeout, 0.05))

    def died(self, w: int) -> WorkerLost:
        self.kill(w)
        return WorkerLost('crash', f'the thread of {self._whose(w)} ended')


class _Nothing:
    """Stands for the shared memory."""

    def send(self, pipe: Any, pid: Any) -> None:
        """All is in the plan."""

    def close(self) -> None:
        """Nothing to free."""
