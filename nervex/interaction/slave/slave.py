"""Slave: takes one task at a time from one master at a time, and works on it in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from nervex.interaction.base import Life
from nervex.interaction.config import HEARTBEAT_TOLERANCE_S
from nervex.interaction.exception import (
    ConnectionRefuse,
    DisconnectionRefuse,
    MasterUnknown,
    SlaveAlreadyConnected,
    SlaveConnectionRefused,
    SlaveDisconnectionRefused,
    SlaveNotConnected,
    SlaveSystemShuttingDown,
    TaskAlreadyExist,
    TaskFail,
    TaskRefuse,
    TaskRefused,
    TaskUnknown,
)

logger = logging.getLogger(__name__)


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
        super().__init__()
        self.name = name
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

    def _lost_connection(self) -> None:
        """The master was silent for too long."""

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
                self._lost_connection()
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
                raise SlaveAlreadyConnected(f'{self.name} is connected to {self._master!r}, not free for {master!r}')
            try:
                self._before_connection(data)
            except ConnectionRefuse as refusal:
                raise SlaveConnectionRefused(f'{self.name}: {refusal}') from refusal
            self._master, self._heard_at = master, self._clock()

    def disconnect(self, master: str, data: Any = None) -> None:
        """Let go of the master; a running task goes on, and its result is dropped."""
        with self._lock:
            self._must_obey(master)
            try:
                self._before_disconnection(data)
            except DisconnectionRefuse as refusal:
                raise SlaveDisconnectionRefused(f'{self.name}: {refusal}') from refusal
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
                raise TaskAlreadyExist(f'{self.name} works on task {self._work[0]}; it takes one at a time')
            try:
                self._before_task(task)
            except TaskRefuse as refusal:
                raise TaskRefused(f'{self.name}: {refusal}') from refusal
            outcome: Future = Future()
            self._work = task_id, outcome
            threading.Thread(target=self._do, args=(task, outcome), name=f'{self.name} {task_id}', daemon=True).start()

    def _do(self, task: dict[str, Any], outcome: Future) -> None:
        try:
            result = self._process_task(task)
        except TaskFail as failure:
            outcome.set_exception(failure)
        except Exception as error:  # of the user's code: it must not end the slave, and the master must see all of it
            lines = traceback.format_exception(error)
            outcome.set_exception(TaskFail(None, f'{type(error).__name__}: {error}\n{"".join(lines)}'))
        else:
            outcome.set_result(result)

    def wait_task(self, master: str, task_id: str) -> Future:
        """The end of a task, once it is there: its result, or ``TaskFail``."""
        with self._lock:
            if master != self._master:
                raise MasterUnknown(f'{self.name} obeys {self._master!r}, not {master!r}')
            if self._work is None or self._work[0] != task_id:
                raise TaskUnknown(f'{self.name} has no task {task_id}')
            return self._work[1]

    def _must_run(self) -> None:
        if not self._running:
            raise SlaveSystemShuttingDown(f'{self.name} is not running')

    def _must_obey(self, master: str) -> None:
        self._must_run()
        if not self.is_connected:
            raise SlaveNotConnected(f'{self.name} has no master; connect first')
        if master != self._master:
            raise MasterUnknown(f'{self.name} obeys {self._master!r}, not {master!r}')
        self._heard_at = self._clock()
