"""How roles run: the interface that the coordinator sees, and the shell that every role lives in."""

from __future__ import annotations

import logging
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from nervex.utils import NervexError

Ref = Any  # what stands for an answer that may still be on its way


class RoleDiedError(NervexError, RuntimeError):
    """The process of a role ended while the coordinator waited for its answer."""


class RoleUnreachableError(RoleDiedError):
    """A role cannot be reached: it is gone, perhaps with its whole machine."""


class RoleNotBuiltError(RoleDiedError):
    """A role raised while it was built; the text holds its traceback."""


class RoleError(NervexError, RuntimeError):
    """The code of a role raised something that is no NervexError; the text is its traceback."""


class LostDataError(NervexError, RuntimeError):
    """A block or the weights that a call should have got are gone, with the machine that held them."""


class Handle(ABC):
    """One running role."""

    name: str

    @abstractmethod
    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        """
        Overview:
            Ask the role to run a method; calls of one handle run one after the other, in this order. References among
            the arguments arrive as what they stand for.
        Returns:
            - ref (:obj:`Ref | list[Ref]`): of the answer; ``returns`` of them where the method answers a tuple
        """


class Carrier(ABC):
    """
    Overview:
        Starts roles, passes calls and answers. A context manager that leaves nothing running.
    Interfaces:
        spawn, wait, get, kill, avoid, now, close
    """

    measures = True  # how long calls take says something about the run

    @abstractmethod
    def spawn(self, name: str, role: Any, kwargs: dict[str, Any], resources: dict[str, Any]) -> Handle:
        """Start ``role(**kwargs)``; does not wait until it is there."""

    @abstractmethod
    def wait(self, refs: Sequence[Ref], timeout_s: float) -> list[Ref]:
        """Those of the answers that are there, as soon as one is; none of them after ``timeout_s``."""

    @abstractmethod
    def get(self, ref: Ref) -> Any:
        """
        Overview:
            An answer that is there. In place of a missing one it raises RoleDiedError, LostDataError, RoleError, or the
            NervexError that the role raised.
        """

    @abstractmethod
    def kill(self, handle: Handle) -> None:
        """End a role at once; its outstanding answers become RoleDiedError."""

    @abstractmethod
    def avoid(self, handle: Handle) -> None:
        """Start no role on the machine of this one, which cannot be reached, while there are others."""

    @abstractmethod
    def now(self) -> float:
        """Seconds on the clock that timeouts go by."""

    @abstractmethod
    def close(self) -> None:
        """End everything; closing twice is fine."""

    def __enter__(self) -> Carrier:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


class RoleHost:
    """
    Overview:
        What runs in the process of a role: makes the process like the user's (folder, import path), builds the role,
        and keeps the warnings that are logged, for the coordinator's log.
    """

    def __init__(self, role: Any, kwargs: dict[str, Any], where: tuple[str, list[str]] | None = None) -> None:
        if where is not None:
            folder, path = where
            if os.path.isdir(folder):
                os.chdir(folder)
            sys.path[:0] = [entry for entry in path if entry not in sys.path]
        self._events = _Events()
        logging.getLogger('nervex').addHandler(self._events)
        self._error: Exception | None = None
        try:
            self._role = role(**kwargs)
            self._role.events = self._events
        except Exception as e:  # whatever it is, it is the answer to the first call
            self._error = e

    def call(self, method: str, *args: Any) -> Any:
        """Run a method of the role."""
        if self._error is not None:
            raise self._error
        return getattr(self._role, method)(*args)

    def close(self) -> None:
        """Let the role go, in order."""
        logging.getLogger('nervex').removeHandler(self._events)
        if self._error is None:
            self._role.close()


class _Events(logging.Handler):
    """The newest warnings of a role's process, until somebody takes them."""

    def __init__(self, kept: int = 20) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        self._lines = [*self._lines, record.getMessage()][-self._kept :]

    def take(self) -> list[str]:
        """The lines; they are forgotten here."""
        lines, self._lines = self._lines, []
        return lines
