"""How calls reach those who work, and how their answers come back: what a master needs to know of processes."""

from __future__ import annotations

import queue
import re
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from nervex.interaction.exception import ConnectionLost, DataLost, SlaveDied, SlaveNotBuilt, SlaveUnreachable, TaskFail
from nervex.utils.errors import NervexError


class Handle(ABC):
    """The way to one slave."""

    name: str

    @abstractmethod
    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        """
        Overview:
            Ask for a method. References among the arguments arrive as what they stand for.
        Returns:
            - answer (:obj:`Future | tuple`): of the answer; with ``returns=2``, of a method that answers a pair, the
                future of its first and a reference to its second, which stays where it is
        """


class Answers:
    """
    Overview:
        Where a master waits for the answers of its slaves.
    Arguments:
        - clock (:obj:`Callable[[], float]`): seconds, that timeouts go by
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._watched: weakref.WeakSet[Future] = weakref.WeakSet()
        self._there: queue.SimpleQueue[Future | None] = queue.SimpleQueue()

    def wait(self, answers: Sequence[Future], timeout_s: float) -> list[Future]:
        """Those that are there, as soon as one is; none of them after ``timeout_s``."""
        for answer in answers:
            if answer not in self._watched:
                self._watched.add(answer)
                answer.add_done_callback(self._there.put)
        found = []
        try:
            found.append(self._there.get(timeout=max(timeout_s, 0.0)))
            while True:
                found.append(self._there.get_nowait())
        except queue.Empty:
            return [answer for answer in found if answer is not None]

    def wake(self) -> None:
        """Let whoever waits look around."""
        self._there.put(None)

    def get(self, answer: Future, timeout_s: float | None = None) -> Any:
        """
        Overview:
            What the slave answered. In place of a missing answer it raises ConnectionLost or SlaveDied, DataLost,
            TaskFail with the traceback of the slave, or the NervexError that the slave raised.
        """
        try:
            return answer.result(timeout_s)
        except Exception as e:
            if not answer.done():
                raise ConnectionLost(f'no answer within {timeout_s:g} s: the slave hangs') from e
            if isinstance(e, NervexError):  # Ray makes a class of its own out of what a slave raised
                raise getattr(e, 'cause', e) from None
            raise _translated(e) from e


class Carrier(Answers, ABC):
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


def _translated(error: Exception) -> Exception:
    """What Ray says in place of an answer, as an error of the framework."""
    from ray import exceptions as errors

    if isinstance(error, errors.ActorUnavailableError):
        return SlaveUnreachable('it cannot be reached: its process or its machine is gone')
    if isinstance(error, (errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError)):
        return SlaveNotBuilt(str(error)) if 'in its creation task' in str(error) else SlaveDied(_one_line(error))
    cause = error.cause if isinstance(error, errors.RayTaskError) else error
    if isinstance(cause, (errors.ObjectLostError, errors.OwnerDiedError, errors.GetTimeoutError)):
        return DataLost(_one_line(cause))
    text = re.sub('\x1b\\[[0-9;]*m', '', str(error))  # without the colours and the first line of Ray
    return TaskFail(None, text.partition('\n')[2] if text.startswith('ray::') else text)


def _one_line(error: Exception) -> str:
    """What Ray says about a death, without its advice."""
    said = ' '.join(str(error).split())
    if 'unexpectedly exits' in said and 'End of file' in said:
        return 'its process was killed or crashed'
    if 'its node has died' in said:
        return 'its machine is gone'
    _, _, detail = said.rpartition('Worker exit detail: ')
    return (detail or said).partition(' Some common causes')[0].partition(' The actor never ran')[0][:200]
