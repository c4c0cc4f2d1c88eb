"""Connection: a master's hold on one slave."""

from __future__ import annotations

import logging
import uuid
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from nervex.interaction.base import Handle
from nervex.interaction.config import HEARTBEAT_SPAN_S, HEARTBEAT_TOLERANCE_S, REQUEST_TIMEOUT_S
from nervex.interaction.exception import (
    ConnectionLost,
    ConnectionNotOpen,
    InteractionError,
    TaskDataInvalid,
)
from nervex.interaction.master.master import Hold, Master
from nervex.interaction.master.task import Task

logger = logging.getLogger(__name__)


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
        self._data, self._token = data, ''

    @property
    def is_connected(self) -> bool:
        """Whether the slave is held."""
        return self._token != ''

    def connect(self) -> Connection:
        """Take hold of the slave; its refusal is raised. Answers itself."""
        if self.is_connected:
            raise ConnectionNotOpen(f'connection {self.name!r} is open already')
        token = uuid.uuid4().hex
        self.master.remember(self)
        try:
            self._ask('connect', token, self._data)
        except BaseException:
            self.master.forget(self)
            raise
        self.greet_at = self.master.line.now() + (self.greets_s or 0.0)
        self._token = token
        return self

    def disconnect(self) -> None:
        """Let go of the slave; its refusal is raised and leaves the connection open. A running task is given up."""
        self._must_be_open()
        try:
            self._ask('disconnect', self._token, self._data)
        except ConnectionLost as error:
            self.lose(error)
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
        return Task(self, data or {}, 'wait_task')

    def ping(self) -> bool:
        """Whether the slave answers at all, connected or not."""
        try:
            return bool(self._ask('ping'))
        except InteractionError:
            return False

    # ---- what the master asks for ----
    def hand_over(self, task: Task) -> Future:
        """Give a task, or a greeting, to the slave; raises its refusal."""
        self._must_be_open()
        if task.method == 'wait_task':
            self._ask('start_task', self._token, task.task_id, task.data)
            task.args = self._token, task.task_id
        return super().hand_over(task)

    def greeting(self) -> Task | None:
        """One heartbeat at a time: an unanswered one is silence."""
        if not self.is_connected or any(
            t.hold is self and t.method == 'heartbeat' for t in list(self.master.calls.values())
        ):
            return None
        return self.new('heartbeat', self._token).on_fail(lambda task: self.lose(task.error))

    def patience_s(self, task: Task) -> float | None:
        """A greeting is to be answered, however busy the slave is."""
        return self._tolerance_s if task.method == 'heartbeat' else None

    def silent(self, task: Task, limit: float) -> None:
        """The slave hangs, or cannot be reached."""
        self.lose(ConnectionLost(f'{self.name}: silent for more than {limit:g} s'))

    def lose(self, error: Any) -> None:
        """The slave is gone."""
        if self.is_connected:
            logger.warning('connection %s is lost: %s', self.name, error)
        self._close(error if isinstance(error, ConnectionLost) else ConnectionLost(f'{self.name}: {error}'))

    def _ask(self, method: str, *args: Any) -> Any:
        """A request, which the slave answers at once."""
        return self.master.line.get(self.handle.call(method, *args), self._request_s)

    def _close(self, reason: InteractionError) -> None:
        if self.is_connected:
            self._token = ''
            self.master.give_up(self, reason)
            self.master.forget(self)

    def _must_be_open(self) -> None:
        if not self.is_connected:
            raise ConnectionNotOpen(f'connection {self.name!r} is not open; connect() first, or use it in a with block')
