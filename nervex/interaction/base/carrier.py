"""How calls reach those who work, and how their answers come back: what a master needs to know of processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

Ref = Any  # what stands for an answer that may still be on its way


class Handle(ABC):
    """The way to one slave."""

    name: str

    @abstractmethod
    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        """
        Overview:
            Ask for a method. References among the arguments arrive as what they stand for.
        Returns:
            - ref (:obj:`Ref | list[Ref]`): of the answer; ``returns`` of them where the method answers a tuple
        """


class Answers(ABC):
    """
    Overview:
        Where a master waits for the answers of its slaves.
    Interfaces:
        wait, get, now
    """

    @abstractmethod
    def wait(self, refs: Sequence[Ref], timeout_s: float) -> list[Ref]:
        """Those of the answers that are there, as soon as one is; none of them after ``timeout_s``."""

    @abstractmethod
    def get(self, ref: Ref, timeout_s: float | None = None) -> Any:
        """
        Overview:
            The answer. In place of a missing one it raises ConnectionLost or SlaveDied, DataLost, TaskFail with the
            traceback of the slave, or the NervexError that the slave raised.
        """

    @abstractmethod
    def now(self) -> float:
        """Seconds on the clock that timeouts go by."""


class Carrier(Answers):
    """
    Overview:
        Starts slaves in processes of their own, and ends them. A context manager that leaves nothing running.
    Interfaces:
        spawn, wait, get, kill, avoid, now, close
    """

    measures = True  # how long calls take says something about the run

    @abstractmethod
    def spawn(self, name: str, role: Any, kwargs: dict[str, Any], resources: dict[str, Any]) -> Handle:
        """Start ``role(**kwargs)``, whose calls run one after the other; does not wait until it is there."""

    @abstractmethod
    def kill(self, handle: Any) -> None:
        """End a slave at once; its outstanding answers become SlaveDied."""

    @abstractmethod
    def avoid(self, handle: Any) -> None:
        """Start nothing on the machine of this one, which cannot be reached, while there are others."""

    @abstractmethod
    def close(self) -> None:
        """End everything; closing twice is fine."""

    def __enter__(self) -> Carrier:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
