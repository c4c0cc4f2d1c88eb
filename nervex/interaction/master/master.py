"""Master: hands tasks to slaves, takes their answers, and finds out who is gone."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from nervex.interaction.base import Answers, Handle, Life, open_handle
from nervex.interaction.exception import (
    ConnectionAlreadyExists,
    InteractionError,
    MasterSystemShuttingDown,
    SlaveDied,
)
from nervex.interaction.master.task import Task, TaskStatus
from nervex.utils.errors import NervexError

if TYPE_CHECKING:
    from nervex.interaction.master.connection import Connection

logger = logging.getLogger(__name__)
_TURN_S = 1.0  # in which the thread of a master looks around at least once


class Hold:
    """
    Overview:
        What a master knows of one slave. This one gives tasks to whoever runs behind ``handle``, as many as it is
        told; ``Connection`` adds the talk with a ``Slave``.
    """

    greets_s: float | None = None  # seconds between two greetings; None: nobody asks whether it lives
    greet_at = 0.0

    def __init__(self, name: str, master: Master, handle: Handle | None) -> None:
        self.name, self.master = name, master
        self.handle: Any = handle  # the way to the slave

    def new(self, method: str, *args: Any, returns: int = 1, **context: Any) -> Task:
        """A task that calls a method of the slave, not started yet."""
        return Task(self, {}, method, args, returns, **context)

    def hand_over(self, task: Task) -> Future:
        """Give a task to the slave; raises its refusal."""
        answer = self.handle.call(task.method, *task.args, returns=task.returns)
        if task.returns > 1:
            answer, task.beside = answer
        return answer

    def greeting(self) -> Task | None:
        """The question whether it lives; None: not now."""
        return None

    def patience_s(self, task: Task) -> float | None:
        """How long a task may take; None: as long as the slave lives."""
        return None

    def silent(self, task: Task, limit: float) -> None:
        """A task took longer than there is patience for."""

    def lose(self, error: InteractionError) -> None:
        """The slave is gone."""
        self.master.give_up(self, error)


class Master(Life):
    """
    Overview:
        ``answers`` waits for slaves, ends their tasks with what came, greets those who say nothing, and loses those
        who stay silent. A master that is made without ``line`` does so in a thread of its own, for slaves that others
        started (``new_connection``); with one, whoever made it calls ``answers``. ``name in master`` and
        ``master[name]`` are about open connections; those that close, for whatever reason, are forgotten.
    Arguments:
        - line (:obj:`Answers | None`): where answers come in
    Interfaces:
        start, shutdown, join, close, ping, new_connection; give, answers, give_up
    """

    def __init__(self, name: str = 'master', line: Answers | None = None) -> None:
        super().__init__()
        self.name = name
        self.line = Answers() if line is None else line
        self.calls: dict[Future, Task] = {}  # tasks that are being done
        self._lock = threading.Lock()
        self._connections: dict[str, Connection] = {}
        self._thread: threading.Thread | None = None
        if line is None:
            self._thread = threading.Thread(target=self._look_after, name=f'{name} waits for answers', daemon=True)

    # ---- tasks ----
    def give(self, task: Task) -> None:
        """Hand a task to its slave; raises the slave's refusal."""
        task.answer = task.hold.hand_over(task)
        task.since = self.line.now()
        self.calls[task.answer] = task
        task.started()
        self._wake()

    def answers(self, timeout_s: float) -> None:
        """
        Overview:
            Wait for answers and end their tasks, whose callbacks run here; then look after those who said nothing.
        """
        for there in self.line.wait(list(self.calls), min([timeout_s, *self._spans()])):
            task = self.calls.get(there)
            if task is None:  # its slave was given up meanwhile
                continue
            try:
                answer = self.line.get(there)
            except NervexError as error:
                self.failed(task, error)
            else:
                self.completed(task, answer)
        now = self.line.now()
        for task in list(self.calls.values()):
            limit = task.hold.patience_s(task)
            if limit is not None and now - task.since > limit and not task.status.is_over:
                task.hold.silent(task, limit)
        for hold in self.holds():
            if hold.greets_s is not None and now >= hold.greet_at:
                hold.greet_at = now + hold.greets_s
                greeting = hold.greeting()
                if greeting is not None:
                    greeting.start()

    def completed(self, task: Task, answer: Any) -> None:
        """An answer came."""
        self.calls.pop(task.answer, None)
        task.finish(TaskStatus.COMPLETED, answer)

    def failed(self, task: Task, error: NervexError) -> None:
        """An error came in place of an answer."""
        if isinstance(error, SlaveDied):
            task.hold.lose(error)
        self.calls.pop(task.answer, None)
        task.finish(TaskStatus.FAILED, error=error)

    def give_up(self, hold: Hold, error: InteractionError) -> None:
        """Forget the tasks of a slave that is gone: they end with this error."""
        lost = [task for task in list(self.calls.values()) if task.hold is hold]
        for task in lost:
            self.calls.pop(task.answer, None)
        for task in lost:
            task.finish(TaskStatus.FAILED, error=error)

    def wait_for(self, event: threading.Event, timeout_s: float | None = None) -> bool:
        """Wait for the end of a task; whether it came in time."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and (thread.is_alive() or event.is_set()):
            return event.wait(timeout_s)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while not event.is_set():
            if until is not None and time.monotonic() >= until:
                return False
            self.answers(_TURN_S if until is None else max(until - time.monotonic(), 0.0))
        return True

    def _spans(self) -> Iterable[float]:
        """Seconds after which there is something to do though no answer came."""
        return [hold.greets_s for hold in self.holds() if hold.greets_s is not None]

    def holds(self) -> list[Any]:
        """The slaves that there are."""
        return list(self._connections.values())

    # ---- life ----
    def start(self) -> Master:
        """Begin; answers itself."""
        super().start()
        if self._thread is not None:
            self._thread.start()
        return self

    def _look_after(self) -> None:
        while self._running:
            try:
                self.answers(_TURN_S)
            except Exception:  # of a callback: the other tasks go on
                logger.exception('%s: a callback failed', self.name)

    def shutdown(self) -> None:
        """Open no more connections, and let go of all slaves, also of those that would refuse it."""
        for connection in list(self._connections.values()):
            try:
                connection.disconnect()
            except InteractionError:  # it refuses, or is lost at this very moment
                connection.abandon()
        super().shutdown()
        if self._thread is not None and self._thread.is_alive():
            self._wake()
            if threading.current_thread() is not self._thread:
                self._thread.join()

    def _wake(self) -> None:
        if self._thread is not None:  # it may be waiting, and not for the newest task
            self.line.wake()

    # ---- connections ----
    def new_connection(self, name: str, address: Any, data: Any = None, **spans: float) -> Connection:
        """
        Overview:
            A connection to a slave, opened by ``connect()`` or by a ``with`` block.
        Arguments:
            - name (:obj:`str`): this master's name of the slave
            - address (:obj:`Any`): see ``nervex.interaction.base.open_handle``
            - spans (:obj:`float`): ``heartbeat_span_s``, ``heartbeat_tolerance_s``, ``request_timeout_s``
        """
        from nervex.interaction.master.connection import Connection

        if not self._running:
            raise MasterSystemShuttingDown(f'{self.name} is not running; use it in a with block, or start() it')
        return Connection(self, name, open_handle(name, address), data, **spans)

    def __contains__(self, name: str) -> bool:
        return name in self._connections

    def __getitem__(self, name: str) -> Connection:
        if name not in self:
            opened = ', '.join(sorted(self._connections)) or 'none'
            raise KeyError(f'{self.name} has no open connection {name!r}; open: {opened}')
        return self._connections[name]

    def remember(self, connection: Connection) -> None:
        """A connection is being opened; raises where its name is taken."""
        with self._lock:
            if not self._running:
                raise MasterSystemShuttingDown(f'{self.name} is not running any more')
            if connection.name in self._connections:
                raise ConnectionAlreadyExists(f'{self.name} has a connection {connection.name!r} already; rename one')
            self._connections[connection.name] = connection
        self._wake()

    def forget(self, connection: Connection) -> None:
        """A connection is closed."""
        with self._lock:
            self._connections.pop(connection.name, None)
