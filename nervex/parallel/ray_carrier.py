"""Every role an actor process of Ray, on this machine or on a cluster."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from nervex.parallel.carrier import (
    Carrier,
    Handle,
    LostDataError,
    Ref,
    RoleDiedError,
    RoleError,
    RoleHost,
    RoleNotBuiltError,
    RoleUnreachableError,
)
from nervex.parallel.placement import actor_options, check_room
from nervex.parallel.ray_daemons import fewer_daemons
from nervex.parallel.ray_guard import Guard
from nervex.parallel.ray_join import check_address, told_in_a_line
from nervex.utils import ExtraMissingError, NervexError

_LOGICAL_CPUS = 4096  # of a cluster of our own: roles share the machine as processes do, none is kept waiting
_NOT_SHOWN = ('A worker died or was killed', 'worker processes have been started on node')
_AVOIDED_S = 60.0  # Ray takes up to half of it to notice that a node is gone
# Blocks of some megabytes come and go: memory that was freed is kept for the next one, as the C library comes to do by
# itself in the end; until then the system would clear every page of every block anew.
_KEEP_FREED = {'MALLOC_MMAP_THRESHOLD_': str(32 * 2**20), 'MALLOC_TRIM_THRESHOLD_': str(64 * 2**20)}
_LOOPBACK = {'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER': '0'}


def require_ray() -> None:
    """Raise an error that says how to get Ray, unless it is there."""
    if importlib.util.find_spec('ray') is None:
        raise ExtraMissingError('parallel mode needs Ray: pip install -e ".[parallel]"')


def import_ray(alone: bool = False) -> Any:
    """
    Overview:
        The package.
    Arguments:
        - alone (:obj:`bool`): all processes of the cluster will be on this machine, so that its ports need no more than
            the loopback; Ray asks for that when it is imported, in the words of the systems where it has no other way
    """
    require_ray()
    with _environment(**(_LOOPBACK if alone else {})):
        import ray
    return ray


class _Host(RoleHost):
    """The shell of a role, that knows where it is."""

    def node_id(self) -> str:
        """The node of this process, as Ray names it."""
        import ray

        return ray.get_runtime_context().get_node_id()


class RayHandle(Handle):
    """A role in an actor process."""

    def __init__(self, name: str, actor: Any, node_id: Ref | None = None) -> None:
        self.name, self.actor, self.node_id = name, actor, node_id

    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        remote = self.actor.call
        return (remote if returns == 1 else remote.options(num_returns=returns)).remote(method, *args)


class RayCarrier(Carrier):
    """
    Overview:
        With an address, a guest of a running cluster; without one, the owner of a cluster of its own that ends with it.
    Arguments:
        - address (:obj:`str | None`): of a running cluster
        - object_store_mb (:obj:`int`): memory for blocks and weights under way, in a cluster of its own
        - show_output (:obj:`bool`): what roles print appears here
    """

    def __init__(self, address: str | None = None, object_store_mb: int = 300, show_output: bool = False) -> None:
        self._own = address is None
        if not self._own:
            check_address(address)
        self._ray = ray = import_ray(alone=self._own)
        options: dict[str, Any] = dict(
            log_to_driver=show_output, logging_level=logging.ERROR, configure_logging=True, namespace='nervex'
        )
        if self._own:
            options.update(
                address='local',
                num_cpus=_LOGICAL_CPUS,
                include_dashboard=False,
                object_store_memory=object_store_mb * 2**20,
                _node_ip_address='127.0.0.1',
            )
        else:
            options.update(address=address)
        variables = dict(RAY_worker_niceness='0', OMP_NUM_THREADS='1', RAY_DEDUP_LOGS='0', **_KEEP_FREED)
        smaller = fewer_daemons(show_output) if self._own else contextlib.nullcontext()
        self._guard = Guard() if self._own else None
        if self._own:
            variables.update(_LOOPBACK, **self._guard.variables)
        everything = _environment(**variables)
        with told_in_a_line(ray, address), everything, smaller:
            ray.init(**options)
        if self._own:
            self._guard.watch(ray._private.worker._global_node)
        if not show_output:
            _leave_deaths_to_the_coordinator()
        self._shell = ray.remote(_Host)
        self._avoided: dict[str, float] = {}  # ids of nodes, and until when
        self._where = (os.getcwd(), [entry for entry in sys.path if entry])
        self._open = True

    def spawn(self, name: str, role: Any, kwargs: dict[str, Any], resources: dict[str, Any]) -> RayHandle:
        now = self.now()
        self._avoided = {node_id: until for node_id, until in self._avoided.items() if until > now}
        turn = getattr(kwargs.get('spec'), 'index', 0)
        if self._own:
            check_room(self._ray.nodes(), name, resources)
        options = actor_options(self._ray, resources, turn, self._avoided)
        actor = self._shell.options(max_restarts=0, **options).remote(role, kwargs, self._where)
        return RayHandle(name, actor, None if self._own else actor.node_id.remote())

    def wait(self, refs: Sequence[Ref], timeout_s: float) -> list[Ref]:
        refs = list(refs)
        if not refs:
            time.sleep(timeout_s)
            return []
        wait = self._ray.wait
        ready, rest = wait(refs, num_returns=1, timeout=timeout_s, fetch_local=False)
        if ready and rest:
            ready += wait(rest, num_returns=len(rest), timeout=0, fetch_local=False)[0]
        return ready

    def get(self, ref: Ref) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(ref, timeout=60)
        except errors.ActorUnavailableError as e:
            raise RoleUnreachableError('it cannot be reached: its process or its machine is gone') from e
        except (errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError) as e:
            if 'in its creation task' in str(e):
                raise RoleNotBuiltError(str(e)) from e
            raise RoleDiedError(_one_line(e)) from e
        except errors.RayTaskError as e:
            cause = e.cause if isinstance(e.cause, Exception) else None
            if isinstance(cause, errors.ObjectLostError):
                raise LostDataError(_one_line(cause)) from e
            if isinstance(cause, RoleDiedError):
                raise RoleDiedError(str(cause).splitlines()[-1]) from e
            if isinstance(cause, NervexError):
                raise cause from None
            raise RoleError(_traceback(e)) from cause
        except (errors.ObjectLostError, errors.OwnerDiedError, errors.GetTimeoutError) as e:
            raise LostDataError(_one_line(e)) from e

    def kill(self, handle: Handle) -> None:
        self._ray.kill(handle.actor, no_restart=True)

    def avoid(self, handle: Handle) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):  # then nobody knows where it was
            node_id = self._ray.get(handle.node_id, timeout=0) if handle.node_id is not None else None
            if node_id is not None:
                self._avoided[node_id] = self.now() + _AVOIDED_S

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._ray.shutdown()
            if self._guard is not None:
                self._guard.dismiss()


def _leave_deaths_to_the_coordinator() -> None:
    """Ray prints a paragraph of advice for every process that dies; the coordinator's log has a line for each."""
    worker = sys.modules['ray._private.worker']
    shown = getattr(worker, 'print_to_stdstream', None)
    if shown is None or hasattr(shown, 'leaves_out_deaths'):
        return

    def print_others(data: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        lines = [str(line) for line in data.get('lines', ())]
        if not any(said in line for said in _NOT_SHOWN for line in lines):
            shown(data, *args, **kwargs)

    print_others.leaves_out_deaths = True
    worker.print_to_stdstream = print_others


def _traceback(error: Exception) -> str:
    """That of the role's process, without the colours and the first line of Ray."""
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


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Variables that the daemons and workers of Ray inherit; what the user has set stays."""
    fresh = {key: value for key, value in values.items() if key not in os.environ}
    os.environ.update(fresh)
    try:
        yield
    finally:
        for key in fresh:
            del os.environ[key]
