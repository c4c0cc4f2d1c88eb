"""What both ends share: the way to a slave, where answers come in, and a beginning and an end."""

from __future__ import annotations

import re
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from nervex.interaction.exception import ConnectionLost, DataLost, SlaveDied, SlaveNotBuilt, SlaveUnreachable, TaskFail
from nervex.utils.errors import NervexError


class Life:
    """
    Overview:
        ``start`` once, ``shutdown`` once; a context manager. A subclass adds what begins and ends.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._running = False
        self._ended = threading.Event()

    def start(self) -> Any:
        """Begin; answers itself."""
        if self._running or self._ended.is_set():
            raise RuntimeError(f'{self.name}: a {type(self).__name__.lower()} starts once')
        self._running = True
        return self

    def shutdown(self) -> None:
        """Take on nothing more."""
        self._running = False
        self._ended.set()

    def join(self) -> None:
        """Wait for ``shutdown``."""
        self._ended.wait()

    def close(self) -> None:
        """``shutdown`` and ``join``."""
        self.shutdown()
        self.join()

    def __enter__(self) -> Any:
        return self.start()

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def ping(self) -> bool:
        """Whether it runs."""
        return self._running


class Handle:
    """
    Overview:
        The way to one slave, and this one to a slave of this process: requests run in the caller's thread, a task in
        one of its own.
    """

    def __init__(self, name: str, slave: Any = None) -> None:
        self.name, self._slave = name, slave

    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        """
        Overview:
            Ask for a method. References among the arguments arrive as what they stand for.
        Returns:
            - answer (:obj:`Future | tuple`): of the answer; with ``returns=2``, of a method that answers a pair, the
                future of its first and a reference to its second, which stays where it is
        """
        done: Future = Future()
        try:
            answer = getattr(self._slave, method)(*args)
        except NervexError as e:
            done.set_exception(e)
            return done
        if isinstance(answer, Future):
            return answer
        done.set_result(answer)
        return done


class RayHandle(Handle):
    """The way to a slave in an actor of Ray, in the shell ``Host``; ``pings`` are Ray's options of a ping."""

    def __init__(self, name: str, actor: Any, node_id: Any = None, **pings: Any) -> None:
        super().__init__(name)
        self.actor, self.node_id, self._pings = actor, node_id, pings

    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        """The answer of the actor."""
        options = self._pings if method == 'ping' else {}
        answer = self.actor.call.options(num_returns=returns, **options).remote(method, *args)
        return answer.future() if returns == 1 else (answer[0].future(), answer[1])


def open_handle(name: str, address: Any) -> Handle:
    """
    Overview:
        The way to a slave that runs.
    Arguments:
        - address (:obj:`Slave | str | ray actor handle | Handle`): a slave of this process, the name of a Ray actor,
            what ``launch_slave`` answered, or a handle of one's own
    """
    if isinstance(address, str):
        import ray

        address = ray.get_actor(address)
    if isinstance(address, Handle):
        return address
    if hasattr(address, '_ray_actor_id') or hasattr(address, '_actor_id'):
        return RayHandle(name, address)
    if hasattr(address, 'start_task'):
        return Handle(name, address)
    raise TypeError(f'address of a slave: got {address!r}, must be a Slave, the name or handle of a Ray actor')


class Answers:
    """
    Overview:
        Where masters wait for the answers of their slaves, one after the other.
    Arguments:
        - clock (:obj:`Callable[[], float]`): seconds, that timeouts go by
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._watched: weakref.WeakSet[Future] = weakref.WeakSet()
        self._news = threading.Event()

    def wait(self, answers: Sequence[Future], timeout_s: float) -> list[Future]:
        """Those that are there, as soon as one is; none of them after ``timeout_s``."""
        for answer in answers:
            if answer not in self._watched:
                self._watched.add(answer)
                answer.add_done_callback(self.wake)
        if not any(answer.done() for answer in answers):
            self._news.wait(max(timeout_s, 0.0))
        self._news.clear()
        return [answer for answer in answers if answer.done()]

    def wake(self, answer: Future | None = None) -> None:
        """There is news: let whoever waits look around."""
        self._news.set()

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
