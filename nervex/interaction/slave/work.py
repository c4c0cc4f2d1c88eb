"""One task while it is worked on: a thread and its outcome."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

from nervex.interaction.exception import TaskFail


class Work:
    """Runs ``function`` in a thread that starts at once; ``outcome`` waits for it."""

    def __init__(self, task_id: str, function: Callable[[], Any], name: str) -> None:
        self.task_id = task_id
        self._function = function
        self._result: Any = None
        self._failure: TaskFail | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether there is an outcome."""
        return self._done.is_set()

    def outcome(self) -> Any:
        """Wait; then the result, or TaskFail."""
        self._done.wait()
        if self._failure is not None:
            raise self._failure
        return self._result

    def join(self) -> None:
        """Wait, whatever comes of it."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self._result = self._function()
        except TaskFail as failure:
            self._failure = failure
        except Exception as error:  # of the user's code: it must not end the slave, and the master must see all of it
            lines = traceback.format_exception(error)
            self._failure = TaskFail(None, f'{type(error).__name__}: {error}\n{"".join(lines)}')
        finally:
            self._done.set()
