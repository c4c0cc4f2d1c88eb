"""A slave in a Ray actor: another process, or another machine."""

from __future__ import annotations

from typing import Any

from nervex.interaction.slave.slave import Slave

_THREADS = 8  # one waits for the task, one greets, the rest answer requests


def launch_slave(
    slave_class: type[Slave], *args: Any, actor_name: str | None = None, num_cpus: float = 1, **kwargs: Any
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

    options = {'num_cpus': num_cpus, 'max_concurrency': _THREADS, 'max_restarts': 0}
    if actor_name is not None:
        options['name'] = actor_name
    return ray.remote(_started(slave_class)).options(**options).remote(*args, **kwargs)


def _started(slave_class: type[Slave]) -> type:
    """A class whose objects are started slaves; Ray makes them and calls their methods."""

    def init(self: Slave, *args: Any, **kwargs: Any) -> None:
        slave_class.__init__(self, *args, **kwargs)
        self.start()

    return type(slave_class.__name__, (slave_class,), {'__init__': init})
