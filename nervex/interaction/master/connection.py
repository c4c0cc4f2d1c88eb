"""Connection: a master's hold on one slave."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any

from nervex.interaction.base import Line, Periodic
from nervex.interaction.config import HEARTBEAT_SPAN_S, HEARTBEAT_TOLERANCE_S, REQUEST_TIMEOUT_S
from nervex.interaction.exception import (
    ConnectionLost,
    ConnectionNotOpen,
    InteractionError,
    SlaveDied,
    SlaveError,
    TaskDataInvalid,
    TaskFail,
)
from nervex.interaction.master.task import Task, TaskStatus

logger = logging.getLogger(__name__)


class Connection:
    """
    Overview:
        Made by ``Master.new_connection``; a context manager that connects and disconnects. A slave that does not answer
        for ``heartbeat_tolerance_s`` is given up: the connection closes and its task fails with ConnectionLost.
    Arguments:
        - name (:obj:`str`): the master's name of the slave
        - line (:obj:`Line`): the way to it
        - data (:obj:`Any`): shown to the slave when it is connected and disconnected
    Interfaces:
        connect, disconnect, new_task, ping; is_connected
    """

    def __init__(
        self,
        name: str,
        line: Line,
        data: Any = None,
        heartbeat_span_s: float = HEARTBEAT_SPAN_S,
        heartbeat_tolerance_s: float = HEARTBEAT_TOLERANCE_S,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
        on_open: Callable[[Connection], None] = lambda connection: None,
        on_close: Callable[[Connection], None] = lambda connection: None,
    ) -> None:
        self.name, self._line, self._data = name, line, data
        self._span_s, self._tolerance_s, self._request_s = heartbeat_span_s, heartbeat_tolerance_s, request_timeout_s
        self._clock, self._on_open, self._on_close = clock, on_open, on_close
        self._token = ''
        self._answered_at = 0.0
        self._lock = threading.Lock()
        self._tasks: dict[str, Task] = {}
        self._greeter: Periodic | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the slave is held."""
        return self._token != ''

    def connect(self) -> Connection:
        """Take hold of the slave; its refusal is raised. Answers itself."""
        if self.is_connected:
            raise ConnectionNotOpen(f'connection {self.name!r} is open already')
        token = uuid.uuid4().hex
        self._on_open(self)
        try:
            self._line.call('connect', token, self._data, timeout_s=self._request_s)
        except BaseException:
            self._on_close(self)
            raise
        self._token, self._answered_at = token, self._clock()
        self._greeter = Periodic(self.beat, self._span_s, f'heartbeat of {self.name}')
        self._greeter.start()
        return self

    def disconnect(self) -> None:
        """Let go of the slave; its refusal is raised and leaves the connection open. A running task is given up."""
        self._must_be_open()
        try:
            self._line.call('disconnect', self._token, self._data, timeout_s=self._request_s)
        except ConnectionLost as error:
            self._lose(f'{error}')
        else:
            self.abandon()

    def abandon(self) -> None:
        """Close without asking the slave; it lets go of its master when it hears nothing more."""
        self._close(ConnectionNotOpen(f'{self.name} was disconnected before the task ended'))

    def __enter__(self) -> Connection:
        return self if self.is_connected else self.connect()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.is_connected:
            self.disconnect()

    def new_task(self, data: dict[str, Any] | None = None) -> Task:
        """A task for this slave, not started yet."""
        self._must_be_open()
        if not isinstance(data or {}, dict):
            raise TaskDataInvalid(f'data of a task for {self.name}: got {data!r}, must be a dict')
        return Task(self, data or {})

    def ping(self) -> bool:
        """Whether the slave answers at all, connected or not."""
        try:
            return bool(self._line.call('ping', timeout_s=self._request_s))
        except InteractionError:
            return False

    def beat(self) -> bool:
        """Greet the slave; give it up when it is silent for too long. Answers whether to go on."""
        token = self._token
        if not token:
            return False
        try:
            self._line.call('heartbeat', token, timeout_s=self._request_s)
            self._answered_at = self._clock()
        except (SlaveError, SlaveDied) as error:  # it has another master or none, or ended: nothing to wait for
            self._lose(f'{error}')
        except ConnectionLost as error:
            silent_s = self._clock() - self._answered_at
            if silent_s >= self._tolerance_s:
                self._lose(f'silent for {silent_s:.1f} s ({error})')
        return self.is_connected

    def hand_over(self, task: Task) -> None:
        """Give a task to the slave and wait for its end in a thread; raises the slave's refusal."""
        self._must_be_open()
        token = self._token
        with self._lock:
            self._tasks[task.task_id] = task
        try:
            self._line.call('start_task', token, task.task_id, task.data, timeout_s=self._request_s)
        except BaseException:
            with self._lock:
                self._tasks.pop(task.task_id, None)
            raise
        task.started()
        name = f'{self.name} task {task.task_id}'
        threading.Thread(target=self._wait, args=(token, task), name=name, daemon=True).start()

    def _wait(self, token: str, task: Task) -> None:
        try:
            result = self._line.call('wait_task', token, task.task_id)
        except (TaskFail, InteractionError) as error:
            outcome: dict[str, Any] = {'status': TaskStatus.FAILED, 'error': error}
        else:
            outcome = {'status': TaskStatus.COMPLETED, 'result': result}
        with self._lock:
            self._tasks.pop(task.task_id, None)
        task.finish(**outcome)
        if isinstance(outcome.get('error'), SlaveDied) and self._token == token:
            self._lose(f'{outcome["error"]}')

    def _lose(self, why: str) -> None:
        logger.warning('connection %s is lost: %s', self.name, why)
        self._close(ConnectionLost(f'{self.name}: {why}'))

    def _close(self, reason: Exception) -> None:
        with self._lock:
            if not self._token:
                return
            self._token = ''
            tasks, self._tasks = list(self._tasks.values()), {}
        self._greeter.stop()
        for task in tasks:
            task.finish(TaskStatus.FAILED, error=reason)
        self._on_close(self)

    def _must_be_open(self) -> None:
        if not self.is_connected:
            raise ConnectionNotOpen(f'connection {self.name!r} is not open; connect() first, or use it in a with block')
