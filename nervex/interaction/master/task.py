"""Task: one piece of work as the master sees it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum, unique
from typing import TYPE_CHECKING, Any

from nervex.interaction.exception import InteractionError, TaskAlreadyStarted, TaskFail

if TYPE_CHECKING:
    from nervex.interaction.master.master import Hold


@unique
class TaskStatus(IntEnum):
    """The life of a task: down to STARTED in this order, then one of the last three."""

    IDLE = 0
    STARTING = 1
    STARTED = 2
    START_FAILED = 3
    COMPLETED = 4
    FAILED = 5

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self >= TaskStatus.START_FAILED


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
        self.since = 0.0  # when it was given out
        self.answer: Future = Future()  # where the slave puts it
        self.result: Any = None
        self.beside: Any = None  # reference to its second answer, where there is one
        self.error: Exception | None = None
        self._status = TaskStatus.IDLE
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._callbacks: dict[bool, list[Callable[[Task], Any]]] = {True: [], False: []}

    @property
    def status(self) -> TaskStatus:
        """Where in its life the task is."""
        return self._status

    def on_complete(self, callback: Callable[[Task], Any]) -> Task:
        """``callback(task)`` when the result is there; answers the task."""
        return self._register(callback, True)

    def on_fail(self, callback: Callable[[Task], Any]) -> Task:
        """``callback(task)`` when the task was refused, failed or was lost; ``task.error`` says which."""
        return self._register(callback, False)

    def start(self) -> Task:
        """Hand the task to the slave; a refusal makes it START_FAILED. Answers the task."""
        with self._lock:
            if self._status is not TaskStatus.IDLE:
                raise TaskAlreadyStarted(f'task {self.task_id} is {self._status.name}; make a new task for a new try')
            self._status = TaskStatus.STARTING
        try:
            self.hold.master.give(self)
        except InteractionError as error:
            self.finish(TaskStatus.START_FAILED, error=error)
        return self

    def started(self) -> None:
        """The slave took it."""
        with self._lock:
            if self._status is TaskStatus.STARTING:
                self._status = TaskStatus.STARTED

    def join(self, timeout_s: float | None = None) -> Task:
        """Wait for the end and for the callbacks; answers the task. TimeoutError if ``timeout_s`` is not enough."""
        if not self.hold.master.wait_for(self._ended, timeout_s):
            raise TimeoutError(f'task {self.task_id} is {self._status.name} after {timeout_s:g} s')
        return self

    def finish(self, status: TaskStatus, result: Any = None, error: Exception | None = None) -> None:
        """The end; the first one counts."""
        with self._lock:
            if self._status.is_over:
                return
            self.result = error.result if isinstance(error, TaskFail) else result
            self.error, self._status = error, status
            callbacks = self._callbacks[error is None]
        try:
            for callback in callbacks:
                callback(self)
        finally:
            self._ended.set()

    def _register(self, callback: Callable[[Task], Any], wants_success: bool) -> Task:
        with self._lock:
            is_over = self._status.is_over
            if not is_over:
                self._callbacks[wants_success].append(callback)
        if is_over and wants_success == (self.error is None):
            callback(self)
        return self
