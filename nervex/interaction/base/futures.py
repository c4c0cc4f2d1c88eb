"""Slaves that somebody else started: objects of this process, and actors of Ray."""

from __future__ import annotations

import queue
import re
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from nervex.interaction.base.carrier import Answers, Handle
from nervex.interaction.exception import ConnectionLost, DataLost, SlaveDied, SlaveNotBuilt, SlaveUnreachable, TaskFail
from nervex.utils.errors import NervexError


class Futures(Answers):
    """
    Overview:
        Answers as ``concurrent.futures.Future``, handed out in the order in which they come.
    Arguments:
        - clock (:obj:`Callable[[], float]`): seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watched: weakref.WeakSet[Future] = weakref.WeakSet()
        self._there: queue.SimpleQueue[Future | None] = queue.SimpleQueue()

    def now(self) -> float:
        """Seconds of the clock."""
        return self._clock()

    def wait(self, refs: Sequence[Future], timeout_s: float) -> list[Future]:
        """The answers that came, once there is one."""
        for ref in refs:
            if ref not in self._watched:
                self._watched.add(ref)
                ref.add_done_callback(self._there.put)
        found = []
        try:
            found.append(self._there.get(timeout=max(timeout_s, 0.0)))
            while True:
                found.append(self._there.get_nowait())
        except queue.Empty:
            return [ref for ref in found if ref is not None]

    def wake(self) -> None:
        """Let whoever waits look around."""
        self._there.put(None)

    def get(self, ref: Future, timeout_s: float | None = None) -> Any:
        """The answer; ConnectionLost if it does not come in time."""
        try:
            return ref.result(timeout_s)
        except TimeoutError as e:
            raise ConnectionLost(f'no answer within {timeout_s:g} s: the slave hangs') from e
        except NervexError as e:
            raise getattr(e, 'cause', e) from None  # Ray makes a class of its own out of what a slave raised
        except Exception as e:
            raise translated(e) from e


class LocalHandle(Handle):
    """A slave of this process: requests run in the caller's thread, a task in one of its own."""

    def __init__(self, name: str, slave: Any) -> None:
        self.name, self._slave = name, slave

    def call(self, method: str, *args: Any, returns: int = 1) -> Future:
        """A future that is done, but for what the slave answers with one of its own."""
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
    """A slave in an actor of Ray, in the shell ``nervex.interaction.slave.Host``."""

    def __init__(self, name: str, actor: Any, node_id: Any = None) -> None:
        self.name, self.actor, self.node_id = name, actor, node_id

    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        """A reference of Ray, or several."""
        remote = self.actor.call
        return (remote if returns == 1 else remote.options(num_returns=returns)).remote(method, *args)


class RayFutureHandle(RayHandle):
    """The same with futures, beside slaves of this process."""

    def call(self, method: str, *args: Any, returns: int = 1) -> Future:
        """One future."""
        return super().call(method, *args).future()


def open_handle(name: str, address: Any) -> Handle:
    """
    Overview:
        The way to a slave that runs.
    Arguments:
        - address (:obj:`Slave | str | ray actor handle | Handle`): a slave of this process, the name of a Ray actor,
            what ``launch_slave`` answered, or a handle of one's own
    """
    if isinstance(address, Handle):  # a way of one's own
        return address
    if isinstance(address, str):
        import ray

        return RayFutureHandle(name, ray.get_actor(address))
    if hasattr(address, '_ray_actor_id') or hasattr(address, '_actor_id'):
        return RayFutureHandle(name, address)
    if hasattr(address, 'start_task'):
        return LocalHandle(name, address)
    raise TypeError(f'address of a slave: got {address!r}, must be a Slave, the name or handle of a Ray actor')


def translated(error: Exception) -> Exception:
    """What Ray raised in place of an answer, as an error of the framework; any other error as it is."""
    import ray

    errors = ray.exceptions
    if isinstance(error, errors.ActorUnavailableError):
        return SlaveUnreachable('it cannot be reached: its process or its machine is gone')
    if isinstance(error, (errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError)):
        return SlaveNotBuilt(str(error)) if 'in its creation task' in str(error) else SlaveDied(_one_line(error))
    if isinstance(error, errors.RayTaskError):
        cause = error.cause
        if isinstance(cause, errors.ObjectLostError):
            return DataLost(_one_line(cause))
        if isinstance(cause, SlaveDied):
            return SlaveDied(str(cause).splitlines()[-1])
        return cause if isinstance(cause, NervexError) else TaskFail(None, _traceback(error))
    if isinstance(error, (errors.ObjectLostError, errors.OwnerDiedError, errors.GetTimeoutError)):
        return DataLost(_one_line(error))
    return error


def _traceback(error: Exception) -> str:
    """That of the slave's process, without the colours and the first line of Ray."""
    text = re.sub('\x1b\\[[0-9;]*m', '', str(error))
    return text.partition('\n')[2] if text.startswith('ray::') else text


def _one_line(error: Exception) -> str:
    """What Ray says about a death, without its advice."""
    said = ' '.join(str(error).split())
    if 'unexpectedly exits' in said and 'End of file' in said:
        return 'its process was killed or crashed'
    if 'its node has died' in said:
        return 'its machine is gone'
    _, _, detail = said.rpartition('Worker exit detail: ')
    return (detail or said).partition(' Some common causes')[0].partition(' The actor never ran')[0][:200]
