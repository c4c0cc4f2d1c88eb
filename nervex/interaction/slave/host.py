"""The shell of whoever works in a process of its own: slaves in Ray actors, and the roles of parallel mode."""

from __future__ import annotations

import logging
import os
import sys
from concurrent.futures import Future
from typing import Any

_THREADS = 8  # one waits for the task, one greets, the rest answer requests


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
            sys.path[:0] = [entry for entry in path if entry not in sys.path]
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

    def __init__(self, kept: int = 20) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self._lines = [*self._lines, record.getMessage()][-self._kept :]

    def take(self) -> list[str]:
        """The lines; they are forgotten here."""
        lines, self._lines = self._lines, []
        return lines


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

    options: dict[str, Any] = {'num_cpus': num_cpus, 'max_concurrency': _THREADS, 'max_restarts': 0}
    if actor_name is not None:
        options['name'] = actor_name

    def started() -> Any:
        return slave_class(*args, **kwargs).start()

    return ray.remote(Host).options(**options).remote(started, {})
