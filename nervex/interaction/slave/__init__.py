"""The end that does the work, and the shell of whoever works in a process of its own."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from nervex.interaction import exception as errors
from nervex.interaction.base import Life
from nervex.interaction.config import HEARTBEAT_TOLERANCE_S

logger = logging.getLogger(__name__)
_KEPT = 20  # warnings
_THREADS = 8  # one waits for the task, one greets, the rest answer requests


class Slave(Life):
    """
    Overview:
        Override ``_process_task``, which answers the result of a task or raises ``TaskFail(result, message)``; where
        wanted, the ``_before_...`` hooks, which may refuse. A busy slave refuses a second task at once. A master that
        is silent for too long is let go of as soon as anybody asks.
    Arguments:
        - name (:obj:`str`): stands in messages
        - heartbeat_tolerance_s (:obj:`float`): silence of the master that ends the connection
        - clock (:obj:`Callable[[], float]`): seconds
    Interfaces:
        start, shutdown, join, close, ping; connect, disconnect, heartbeat, start_task, wait_task (for the master)
    """

    def __init__(
        self,
        name: str = 'slave',
        heartbeat_tolerance_s: float = HEARTBEAT_TOLERANCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name)
        self._tolerance_s, self._clock = heartbeat_tolerance_s, clock
        self._lock = threading.RLock()
        self._master: str | None = None
        self._heard_at = 0.0
        self._work: tuple[str, Future] | None = None

    # what a subclass overrides

    def _process_task(self, task: dict[str, Any]) -> Any:
        """Do the work; the answer becomes ``task.result`` of the master."""
        raise NotImplementedError(f'{type(self).__name__} must override _process_task(task) -> result')

    def _before_connection(self, data: Any) -> None:
        """May raise ConnectionRefuse."""

    def _before_disconnection(self, data: Any) -> None:
        """May raise DisconnectionRefuse."""

    def _before_task(self, task: dict[str, Any]) -> None:
        """May raise TaskRefuse."""

    # life

    @property
    def is_connected(self) -> bool:
        """Whether a master holds this slave, and has not been silent for too long."""
        with self._lock:
            silent_s = self._clock() - self._heard_at
            if self._master is not None and silent_s > self._tolerance_s:
                logger.warning(
                    '%s: master %r is silent for %.1f s, letting go of it', self.name, self._master, silent_s
                )
                self._master = None
            return self._master is not None

    def join(self) -> None:
        """Wait for ``shutdown``, which takes no more requests, and for the task that goes on."""
        super().join()
        if self._work is not None:
            self._work[1].exception()

    # what the master calls

    def connect(self, master: str, data: Any = None) -> None:
        """Obey this master from now on."""
        with self._lock:
            self._must_run()
            if self.is_connected:
                raise errors.SlaveAlreadyConnected(
                    f'{self.name} is connected to {self._master!r}, not free for {master!r}'
                )
            self._may(self._before_connection, data, errors.SlaveConnectionRefused)
            self._master, self._heard_at = master, self._clock()

    def disconnect(self, master: str, data: Any = None) -> None:
        """Let go of the master; a running task goes on, and its result is dropped."""
        with self._lock:
            self._must_obey(master)
            self._may(self._before_disconnection, data, errors.SlaveDisconnectionRefused)
            self._master = None

    def heartbeat(self, master: str) -> None:
        """The master lives."""
        with self._lock:
            self._must_obey(master)

    def start_task(self, master: str, task_id: str, task: dict[str, Any]) -> None:
        """Begin to work on a task, and answer at once."""
        with self._lock:
            self._must_obey(master)
            if self._work is not None and not self._work[1].done():
                raise errors.TaskAlreadyExist(f'{self.name} works on task {self._work[0]}; it takes one at a time')
            self._may(self._before_task, task, errors.TaskRefused)
            outcome: Future = Future()
            self._work = task_id, outcome
            threading.Thread(target=self._do, args=(task, outcome), name=f'{self.name} {task_id}', daemon=True).start()

    def _do(self, task: dict[str, Any], outcome: Future) -> None:
        try:
            result = self._process_task(task)
        except errors.TaskFail as failure:
            outcome.set_exception(failure)
        except Exception as error:  # of the user's code: it must not end the slave, and the master must see all of it
            outcome.set_exception(errors.TaskFail(None, f'{type(error).__name__}: {error}\n{traceback.format_exc()}'))
        else:
            outcome.set_result(result)

    def wait_task(self, master: str, task_id: str) -> Future:
        """The end of a task, once it is there: its result, or ``TaskFail``."""
        with self._lock:
            self._must_be(master)
            if self._work is None or self._work[0] != task_id:
                raise errors.TaskUnknown(f'{self.name} has no task {task_id}')
            return self._work[1]

    def _may(self, hook: Callable[[Any], None], data: Any, refused: Any) -> None:
        try:
            hook(data)
        except errors.Refusal as refusal:
            raise refused(f'{self.name}: {refusal}') from refusal

    def _must_run(self) -> None:
        if not self._running:
            raise errors.SlaveSystemShuttingDown(f'{self.name} is not running')

    def _must_be(self, master: str) -> None:
        if master != self._master:
            raise errors.MasterUnknown(f'{self.name} obeys {self._master!r}, not {master!r}')

    def _must_obey(self, master: str) -> None:
        self._must_run()
        if not self.is_connected:
            raise errors.SlaveNotConnected(f'{self.name} has no master; connect first')
        self._must_be(master)
        self._heard_at = self._clock()


class Host:
    """
    Overview:
        Makes the process like the user's (folder, import path), builds what is to run in it, calls its methods, and
        keeps the warnings that are logged, for whoever asks. An error while it is built is the answer to every call.
    Arguments:
        - make (:obj:`Callable`): called with ``kwargs``
        - where (:obj:`tuple | None`): folder and import path of the process that asked for it
    """

    def __init__(self, make: Any, kwargs: dict[str, Any], where: tuple[str, list[str]] | None = None) -> None:
        if where is not None:
            folder, path = where
            if os.path.isdir(folder):
                os.chdir(folder)
            sys.path += [entry for entry in path if entry not in sys.path]
        self._events = _Events()
        logging.getLogger('nervex').addHandler(self._events)
        self._error: Exception | None = None
        try:
            self._role = make(**kwargs)
            self._role.events = self._events
        except Exception as e:  # whatever it is, it is the answer to the first call
            self._error = e

    def call(self, method: str, *args: Any) -> Any:
        """Run a method; waits for what it answers."""
        if self._error is not None:
            raise self._error
        answer = getattr(self._role, method)(*args)
        return answer.result() if isinstance(answer, Future) else answer

    def node_id(self) -> str:
        """The node of this process, as Ray names it."""
        import ray

        return ray.get_runtime_context().get_node_id()

    def close(self) -> None:
        """Let the role go, in order."""
        logging.getLogger('nervex').removeHandler(self._events)
        if self._error is None:
            self._role.close()


class _Events(logging.Handler):
    """The newest warnings of a process, until somebody takes them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: deque[str] = deque(maxlen=_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self._lines.append(record.getMessage())

    def take(self) -> list[str]:
        """The lines; they are forgotten here."""
        return [self._lines.popleft() for _ in range(len(self._lines))]


def launch_slave(
    slave_class: Any, *args: Any, actor_name: str | None = None, num_cpus: float = 1, **kwargs: Any
) -> Any:
    """
    Overview:
        Start a slave in a Ray actor of its own. Ray must be initialised.
    Arguments:
        - slave_class (:obj:`type[Slave]`): made over there, with ``args`` and ``kwargs``
        - actor_name (:obj:`str | None`): other processes find the slave by it; None where the handle is passed on
        - num_cpus (:obj:`float`): processors that the actor holds
    Returns:
        - handle (:obj:`ray actor handle`): an address for ``Master.new_connection``
    """
    import ray

    options = {'num_cpus': num_cpus, 'max_concurrency': _THREADS, 'max_restarts': 0, 'name': actor_name}

    def started() -> Any:
        return slave_class(*args, **kwargs).start()

    return ray.remote(Host).options(**options).remote(started, {})
