"""The way from a master to one slave: calls of the slave's methods, in this process or in a Ray actor."""

from __future__ import annotations

from typing import Any, Protocol

from nervex.interaction.exception import ConnectionLost, SlaveDied


class Line(Protocol):
    """
    Overview:
        Carries calls to a slave. What the slave raises is raised here; a slave that is gone raises ConnectionLost.
    """

    def call(self, method: str, *args: Any, timeout_s: float | None = None) -> Any:
        """The slave's answer. ``timeout_s=None`` waits as long as the slave lives."""


class ThreadLine:
    """A slave in this process: its methods run in the caller's thread, its tasks in a thread of their own."""

    def __init__(self, slave: Any) -> None:
        self._slave = slave

    def call(self, method: str, *args: Any, timeout_s: float | None = None) -> Any:
        """Call the method; within a process an answer cannot get lost, so that no time limit is needed."""
        return getattr(self._slave, method)(*args)


class RayLine:
    """A slave in a Ray actor, see ``nervex.interaction.slave.ray_slave``."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def call(self, method: str, *args: Any, timeout_s: float | None = None) -> Any:
        """Call the method over there; Ray's own errors become ConnectionLost."""
        import ray

        try:
            return ray.get(getattr(self._handle, method).remote(*args), timeout=timeout_s)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, Exception):
                raise error.cause from error
            raise
        except ray.exceptions.GetTimeoutError as error:
            raise ConnectionLost(f'no answer to {method!r} within {timeout_s:g} s: the slave hangs') from error
        except ray.exceptions.ActorDiedError as error:
            raise SlaveDied(f'no answer to {method!r}: {first_line(error)}') from error
        except ray.exceptions.RayError as error:
            raise ConnectionLost(f'no answer to {method!r}: {first_line(error)}') from error


def first_line(error: Exception) -> str:
    """The first line that says something; Ray's texts have dozens."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def open_line(address: Any) -> Line:
    """
    Overview:
        The line to a slave.
    Arguments:
        - address (:obj:`Slave | str | ray actor handle | Line`): a slave of this process, the name of a Ray actor, what
            ``launch_slave`` answered, or a line of one's own
    """
    if hasattr(address, 'call'):
        return address
    if isinstance(address, str):
        import ray

        return RayLine(ray.get_actor(address))
    if hasattr(address, '_ray_actor_id') or hasattr(address, '_actor_id'):
        return RayLine(address)
    if hasattr(address, 'start_task'):
        return ThreadLine(address)
    raise TypeError(f'address of a slave: got {address!r}, must be a Slave, the name or handle of a Ray actor')
