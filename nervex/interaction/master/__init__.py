"""The end that hands out the work: a master, its hold on each slave, and tasks."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum, unique
from typing import Any

from nervex.interaction.base import Answers, Handle, Life, open_handle
from nervex.interaction.config import HEARTBEAT_SPAN_S, HEARTBEAT_TOLERANCE_S, REQUEST_TIMEOUT_S
from nervex.interaction.exception import (
    ConnectionAlreadyExists,
    ConnectionLost,
    ConnectionNotOpen,
    InteractionError,
    MasterSystemShuttingDown,
    SlaveDied,
    TaskAlreadyStarted,
    TaskDataInvalid,
    TaskFail,
)
from nervex.utils.errors import NervexError

logger = logging.getLogger(__name__)
_TURN_S = 1.0  # in which the thread of a master looks around at least once


@unique
class TaskStatus(IntEnum):
    """The life of a task: down to STARTED in this order, then one of the last three."""

    IDLE = 0
    STARTING = 1
    STARTED = 2
    START_FAILED = 3
    COMPLETED = 4
    FAILED = 5


class Task:
    """
    Overview:
        ``connection.new_task(data).on_complete(show).start().join()``. Starting does not wait for the work: callbacks
        run where the master waits for answers. Whoever is registered after the end is called at once.
    Arguments:
        - hold (:obj:`Hold`): the master's hold on the slave that will do it
        - method, args, returns: what the slave is called with, see ``Handle.call``
        - context (:obj:`Any`): whatever the master wants to remember with it
    Interfaces:
        start, join, on_complete, on_fail; status, result, error, data, task_id, context, beside
    """

    def __init__(
        self, hold: Hold, data: dict[str, Any], method: str, args: tuple = (), returns: int = 1, **context: Any
    ) -> None:
        self.hold: Any = hold
        self.data, self.task_id = data, uuid.uuid4().hex
        self.method, self.args, self.returns, self.context = method, args, returns, context
        self.status = TaskStatus.IDLE
        self.since = 0.0  # when it was given out
        self.answer: Future = Future()  # where the slave puts it
        self.result: Any = None
        self.beside: Any = None  # reference to its second answer, where there is one
        self.error: Exception | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._callbacks: dict[bool, list[Callable[[Task], Any]]] = {True: [], False: []}

    def on_complete(self, callback: Callable[[Task], Any]) -> Task:
        """``callback(task)`` when the result is there; answers the task."""
        return self._register(callback, True)

    def on_fail(self, callback: Callable[[Task], Any]) -> Task:
        """``callback(task)`` when the task was refused, failed or was lost; ``task.error`` says which."""
        return self._register(callback, False)

    def start(self) -> Task:
        """Hand the task to the slave; a refusal makes it START_FAILED. Answers the task."""
        with self._lock:
            if self.status is not TaskStatus.IDLE:
                raise TaskAlreadyStarted(f'task {self.task_id} is {self.status.name}; make a new task for a new try')
            self.status = TaskStatus.STARTING
        try:
            self.hold.master.give(self)
        except InteractionError as error:
            self.finish(TaskStatus.START_FAILED, error=error)
        return self

    def join(self, timeout_s: float | None = None) -> Task:
        """Wait for the end and for the callbacks; answers the task. TimeoutError if ``timeout_s`` is not enough."""
        if not self.hold.master.wait_for(self._ended, timeout_s):
            raise TimeoutError(f'task {self.task_id} is {self.status.name} after {timeout_s:g} s')
        return self

    def finish(self, status: TaskStatus, result: Any = None, error: Exception | None = None) -> None:
        """The end; the first one counts."""
        with self._lock:
            if self.status > TaskStatus.STARTED:
                return
            self.result = error.result if isinstance(error, TaskFail) else result
            self.error, self.status = error, status
            callbacks = self._callbacks[error is None]
        with contextlib.ExitStack() as stack:  # one that raises keeps nobody else from being told
            stack.callback(self._ended.set)
            for callback in reversed(callbacks):
                stack.callback(callback, self)

    def _register(self, callback: Callable[[Task], Any], wants_success: bool) -> Task:
        with self._lock:
            is_over = self.status > TaskStatus.STARTED
            if not is_over:
                self._callbacks[wants_success].append(callback)
        if is_over and wants_success == (self.error is None):
            callback(self)
        return self


class Hold:
    """
    Overview:
        What a master knows of one slave: it gives tasks to whoever runs behind ``handle``, as many as it is told. A
        subclass has ``look_after(now)``, which asks whether the slave lives and gives up who is silent; ``Connection``
        adds the talk with a ``Slave``.
    """

    greets_s = 1.0  # seconds between two looks at it, at most

    def __init__(self, name: str, master: Master, handle: Handle | None) -> None:
        self.name, self.master = name, master
        self.handle: Any = handle  # the way to the slave

    def new(self, method: str, *args: Any, returns: int = 1, **context: Any) -> Task:
        """A task that calls a method of the slave, not started yet."""
        return Task(self, {}, method, args, returns, **context)

    def tasks(self) -> list[Task]:
        """Those that the slave has not answered."""
        return [task for task in list(self.master.calls.values()) if task.hold is self]

    def hand_over(self, task: Task) -> None:
        """Give a task to the slave; raises its refusal."""
        answer = self.handle.call(task.method, *task.args, returns=task.returns)
        task.answer, task.beside = (answer, None) if task.returns == 1 else answer


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
        super().__init__(name)
        self.line = Answers() if line is None else line
        self.calls: dict[Future, Task] = {}  # tasks that are being done
        self.lock = threading.Lock()  # of the connections
        self.connections: dict[str, Connection] = {}  # those that are open, by name
        self._thread: threading.Thread | None = None
        if line is None:
            self._thread = threading.Thread(target=self._look_after, name=f'{name} waits for answers', daemon=True)

    # ---- tasks ----
    def give(self, task: Task) -> None:
        """Hand a task to its slave; raises the slave's refusal."""
        task.hold.hand_over(task)
        task.since, task.status = self.line.now(), TaskStatus.STARTED
        self.calls[task.answer] = task
        if self._thread is not None:  # it may be waiting, and not for this task
            self.line.wake()

    def answers(self, timeout_s: float) -> None:
        """
        Overview:
            Wait for answers and end their tasks, whose callbacks run here; then look after those who said nothing.
        """
        for there in self.line.wait(list(self.calls), min([timeout_s, *(hold.greets_s for hold in self.holds())])):
            task = self.calls.get(there)
            if task is None:  # its slave was given up meanwhile
                continue
            try:
                answer = self.line.get(there)
            except NervexError as error:
                self.failed(task, error)
            else:
                self.completed(task, answer)
        for hold in self.holds():
            hold.look_after(self.line.now())

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
        lost = hold.tasks()
        for task in lost:
            self.calls.pop(task.answer, None)
        with contextlib.ExitStack() as stack:
            for task in reversed(lost):
                stack.callback(task.finish, TaskStatus.FAILED, error=error)

    def wait_for(self, event: threading.Event, timeout_s: float | None = None) -> bool:
        """Wait for the end of a task; whether it came in time."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and (thread.is_alive() or event.is_set()):
            return event.wait(timeout_s)
        until = time.monotonic() + (float('inf') if timeout_s is None else timeout_s)
        while not event.is_set() and time.monotonic() < until:
            self.answers(max(min(_TURN_S, until - time.monotonic()), 0.0))
        return event.is_set()

    def holds(self) -> list[Any]:
        """The slaves that there are."""
        return list(self.connections.values())

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
        for connection in self.holds():
            try:
                connection.disconnect()
            except InteractionError:  # it refuses, or is lost at this very moment
                connection.lose(ConnectionNotOpen(f'{self.name} was shut down before the task ended'))
        super().shutdown()
        self.line.wake()
        if self._thread is not None and self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

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
        if not self._running:
            raise MasterSystemShuttingDown(f'{self.name} is not running; use it in a with block, or start() it')
        return Connection(self, name, open_handle(name, address), data, **spans)

    def __contains__(self, name: str) -> bool:
        return name in self.connections

    def __getitem__(self, name: str) -> Connection:
        if name not in self:
            opened = ', '.join(sorted(self.connections)) or 'none'
            raise KeyError(f'{self.name} has no open connection {name!r}; open: {opened}')
        return self.connections[name]


class Connection(Hold):
    """
    Overview:
        Made by ``Master.new_connection``; a context manager that connects and disconnects. A slave that does not answer
        for ``heartbeat_tolerance_s`` is given up: the connection closes and its task fails with ConnectionLost.
    Arguments:
        - data (:obj:`Any`): shown to the slave when it is connected and disconnected
    Interfaces:
        connect, disconnect, new_task, ping; is_connected
    """

    def __init__(
        self,
        master: Master,
        name: str,
        handle: Handle,
        data: Any = None,
        heartbeat_span_s: float = HEARTBEAT_SPAN_S,
        heartbeat_tolerance_s: float = HEARTBEAT_TOLERANCE_S,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        super().__init__(name, master, handle)
        if heartbeat_span_s <= 0:
            raise ValueError(f'{name}: got a heartbeat span of {heartbeat_span_s} s, must be positive')
        self.greets_s, self._tolerance_s, self._request_s = heartbeat_span_s, heartbeat_tolerance_s, request_timeout_s
        self._data, self._token, self._greet_at = data, '', 0.0

    @property
    def is_connected(self) -> bool:
        """Whether the slave is held."""
        return self._token != ''

    def connect(self) -> Connection:
        """Take hold of the slave; its refusal is raised. Answers itself."""
        if self.is_connected:
            raise ConnectionNotOpen(f'connection {self.name!r} is open already')
        token, master = uuid.uuid4().hex, self.master
        with master.lock:
            if not master.ping():
                raise MasterSystemShuttingDown(f'{master.name} is not running any more')
            if self.name in master:
                raise ConnectionAlreadyExists(f'{master.name} has a connection {self.name!r} already; rename one')
            master.connections[self.name] = self
        try:
            self._ask('connect', token, self._data)
        except BaseException:
            master.connections.pop(self.name)
            raise
        self._token, self._greet_at = token, master.line.now() + self.greets_s
        master.line.wake()
        return self

    def disconnect(self) -> None:
        """Let go of the slave; its refusal is raised and leaves the connection open. A running task is given up."""
        self._must_be_open()
        try:
            self._ask('disconnect', self._token, self._data)
        except ConnectionLost as error:
            self.lose(error)
        else:
            self.lose(ConnectionNotOpen(f'{self.name} was disconnected before the task ended'))

    def __enter__(self) -> Connection:
        return self if self.is_connected else self.connect()

    def __exit__(self, *exc: Any) -> None:
        if self.is_connected:
            self.disconnect()

    def new_task(self, data: dict[str, Any] | None = None) -> Task:
        """A task for this slave, not started yet."""
        self._must_be_open()
        if not isinstance(data or {}, dict):
            raise TaskDataInvalid(f'data of a task for {self.name}: got {data!r}, must be a dict')
        return Task(self, data or {}, 'wait_task')

    def ping(self) -> bool:
        """Whether the slave answers at all, connected or not."""
        try:
            return bool(self._ask('ping'))
        except InteractionError:
            return False

    # ---- what the master asks for ----
    def hand_over(self, task: Task) -> None:
        """Give a task, or a greeting, to the slave; raises its refusal."""
        self._must_be_open()
        if task.method == 'wait_task':
            self._ask('start_task', self._token, task.task_id, task.data)
            task.args = self._token, task.task_id
        super().hand_over(task)

    def look_after(self, now: float) -> None:
        """A heartbeat is to be answered, however busy the slave is; one at a time: an unanswered one is silence."""
        beats = [task for task in self.tasks() if task.method == 'heartbeat']
        if beats and now - beats[0].since > self._tolerance_s:
            self.lose(ConnectionLost(f'{self.name}: silent for more than {self._tolerance_s:g} s'))
        elif not beats and self.is_connected and now >= self._greet_at:
            self._greet_at = now + self.greets_s
            self.new('heartbeat', self._token).on_fail(lambda task: self.lose(task.error)).start()

    def lose(self, error: Any) -> None:
        """Close without asking the slave, which is gone, or lets go of its master when it hears nothing more."""
        if not self.is_connected:
            return
        if not isinstance(error, (ConnectionLost, ConnectionNotOpen)):
            error = ConnectionLost(f'{self.name}: {error}')
        if isinstance(error, ConnectionLost):
            logger.warning('connection %s is lost: %s', self.name, error)
        self._token = ''
        self.master.connections.pop(self.name, None)
        self.master.give_up(self, error)

    def _ask(self, method: str, *args: Any) -> Any:
        """A request, which the slave answers at once."""
        return self.master.line.get(self.handle.call(method, *args), self._request_s)

    def _must_be_open(self) -> None:
        if not self.is_connected:
            raise ConnectionNotOpen(f'connection {self.name!r} is not open; connect() first, or use it in a with block')
