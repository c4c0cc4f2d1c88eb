"""The ways to slaves: objects of this process, and actors of Ray."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from nervex.interaction.base.answers import Handle
from nervex.utils.errors import NervexError


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
        """The answer of the actor."""
        if returns == 1:
            return self.actor.call.remote(method, *args).future()
        answer, beside = self.actor.call.options(num_returns=returns).remote(method, *args)
        return answer.future(), beside


def open_handle(name: str, address: Any) -> Handle:
    """
    Overview:
        The way to a slave that runs.
    Arguments:
        - address (:obj:`Slave | str | ray actor handle | Handle`): a slave of this process, the name of a Ray actor,
            what ``launch_slave`` answered, or a handle of one's own
    """
    if isinstance(address, Handle):
        return address
    if isinstance(address, str):
        import ray

        return RayHandle(name, ray.get_actor(address))
    if hasattr(address, '_ray_actor_id') or hasattr(address, '_actor_id'):
        return RayHandle(name, address)
    if hasattr(address, 'start_task'):
        return LocalHandle(name, address)
    raise TypeError(f'address of a slave: got {address!r}, must be a Slave, the name or handle of a Ray actor')
