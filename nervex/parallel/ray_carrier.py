"""Every role an actor process of Ray, on this machine or on a cluster, on the nodes that the config names."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Collection
from typing import Any

from nervex.interaction.base import RayHandle
from nervex.interaction.slave import Host
from nervex.parallel.carrier import Carrier
from nervex.parallel.ray_cluster import RayCluster, check_address
from nervex.utils import ConfigError, TrainingError

logger = logging.getLogger(__name__)
_LOGICAL_CPUS = 4096  # of a cluster of our own: roles share the machine as processes do, none is kept waiting
_NOT_SHOWN = (
    'A worker died or was killed',
    'worker processes have been started on node',
    'Raylet is terminated',
    'has been marked dead',
)
_LIFE = 'life'  # the thread of a role that answers while another one works
_ASK_S, _MISSES = 1.0, 2  # between two questions whether another's cluster has its head; without an answer in a row
_AVOIDED_S = 60.0  # Ray takes up to half of it to notice that a node is gone


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
        super().__init__()
        options = dict(log_to_driver=show_output, logging_level=logging.ERROR, namespace='nervex')
        self._cluster = RayCluster(address, _LOGICAL_CPUS, object_store_mb, show_output, **options)
        self._ray, self._guard = self._cluster.ray, self._cluster.guard
        if not show_output:
            _leave_deaths_to_the_coordinator()
        self._shell = self._ray.remote(concurrency_groups={_LIFE: 1})(Host)
        self._avoided: dict[str, float] = {}  # ids of nodes, and until when
        self._where = (os.getcwd(), [entry for entry in sys.path if entry])
        self._head, self._ask_at, self._misses = self._ray.get_runtime_context().gcs_address, 0.0, 0
        self._open = True

    def spawn(self, name: str, role: Any, kwargs: dict[str, Any], resources: dict[str, Any]) -> RayHandle:
        """Start an actor process where its resources are."""
        now = self.now()
        self._avoided = {node_id: until for node_id, until in self._avoided.items() if until > now}
        turn = getattr(kwargs.get('spec'), 'index', 0)
        if self._guard is not None:
            nodes = self._ray.nodes()
            self._guard.check(gone=not any(node['Alive'] for node in nodes))
            check_room(nodes, name, resources)
        options = actor_options(self._ray, resources, turn, self._avoided)
        actor = self._shell.options(max_restarts=0, **options).remote(role, kwargs, self._where)
        node_id = None if self._guard else actor.node_id.remote()
        return RayHandle(name, actor, node_id, concurrency_group=_LIFE)

    def kill(self, handle: RayHandle) -> None:
        """End its process."""
        self._ray.kill(handle.actor, no_restart=True)

    def avoid(self, handle: RayHandle) -> None:
        """Its node, for a while."""
        with contextlib.suppress(self._ray.exceptions.RayError):  # then nobody knows where it was
            node_id = self._ray.get(handle.node_id, timeout=0) if handle.node_id is not None else None
            if node_id is not None:
                self._avoided[node_id] = self.now() + _AVOIDED_S

    def check(self) -> None:
        """Raise an error if a daemon of our own cluster has ended, or nothing answers where the head of another was."""
        if self._guard is not None:
            self._guard.check()
        elif self.now() > self._ask_at:
            self._ask_at = self.now() + _ASK_S
            try:
                check_address(self._head)
                self._misses = 0
            except ConfigError as e:
                self._misses += 1
                if self._misses >= _MISSES:
                    raise TrainingError(f"Ray's head is gone: {e}. Then start the run again, with --resume") from e

    def close(self) -> None:
        """Leave the cluster, or end it."""
        if self._open:
            self._open = False
            self._cluster.close()


def _leave_deaths_to_the_coordinator() -> None:
    """Ray prints a paragraph of advice for every process that dies; the coordinator's log has a line for each."""
    worker: Any = sys.modules['ray._private.worker']
    shown = getattr(worker, 'print_to_stdstream', None)
    if shown is None or hasattr(shown, 'leaves_out_deaths'):
        return

    def print_others(data: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        lines = [str(line) for line in data.get('lines', ())]
        if not any(said in line for said in _NOT_SHOWN for line in lines):
            shown(data, *args, **kwargs)

    print_others.leaves_out_deaths = True  # type: ignore[attr-defined]
    worker.print_to_stdstream = print_others


# ---- where roles run ----
def names_of(node: dict[str, Any]) -> set[str]:
    """
    Overview:
        The names that a node of a Ray cluster answers to: its address, its host name, and what its resources of the
        form ``host:NAME`` say.
    """
    own = {node.get('NodeManagerAddress'), node.get('NodeManagerHostname'), node.get('NodeName')}
    given = {name.partition(':')[2] for name in node.get('Resources', {}) if name.startswith('host:')}
    return {name for name in own | given if name}


def node_for(hosts: list[str], nodes: list[dict[str, Any]], turn: int) -> str | None:
    """
    Overview:
        The node that a role should run on.
    Arguments:
        - hosts (:obj:`list[str]`): names of nodes; they take turns
        - nodes (:obj:`list[dict]`): what ``ray.nodes()`` answers
        - turn (:obj:`int`): of the role
    Returns:
        - node_id (:obj:`str | None`): None when none of them is there
    """
    alive = {name: node['NodeID'] for node in nodes if node['Alive'] for name in names_of(node)}
    for offset in range(len(hosts)):
        host = hosts[(turn + offset) % len(hosts)]
        if host in alive:
            return alive[host]
    known = ', '.join(sorted(alive)) or 'none'
    logger.warning('none of the hosts %s is in the cluster, any other will do; there are: %s', ', '.join(hosts), known)
    return None


def actor_options(ray: Any, resources: dict[str, Any], turn: int, avoided: Collection[str] = ()) -> dict[str, Any]:
    """
    Overview:
        The options of a Ray actor for ``parallel.resources.<role>``.
    Arguments:
        - turn (:obj:`int`): of the role, where several hosts are named
        - avoided (:obj:`Collection[str]`): ids of nodes that it should not be on, if another one will do
    """
    options = {key: value for key, value in resources.items() if value is not None}
    hosts, custom = options.pop('hosts', None), options.pop('custom', None)
    if custom:
        options['resources'] = custom
    nodes = [node for node in ray.nodes() if node['NodeID'] not in avoided] if hosts or avoided else []
    node_id = node_for(list(hosts), nodes, turn) if hosts else None
    if node_id is not None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options['scheduling_strategy'] = NodeAffinitySchedulingStrategy(node_id, soft=True)
    elif avoided and any(node['Alive'] for node in nodes):
        options['label_selector'] = {'ray.io/node-id': f'!in({",".join(avoided)})'}
        options['fallback_strategy'] = [{'label_selector': {}}]
    return options


def check_room(nodes: list[dict[str, Any]], role: str, resources: dict[str, Any]) -> None:
    """
    Overview:
        Raise a ConfigError if a role asks for more than any of these nodes has, when no others will join.
    Arguments:
        - role (:obj:`str`): its name, kind and number
        - resources (:obj:`dict`): ``parallel.resources.<kind>``
    """
    path = f'parallel.resources.{role.rstrip("0123456789")}'
    wanted = {'num_cpus': ('CPU', resources.get('num_cpus')), 'num_gpus': ('GPU', resources.get('num_gpus'))}
    wanted.update({f'custom.{name}': (name, amount) for name, amount in (resources.get('custom') or {}).items()})
    for key, (name, amount) in wanted.items():
        most = max((node['Resources'].get(name, 0) for node in nodes if node['Alive']), default=0)
        if amount is not None and amount > most:
            raise ConfigError(
                f'{path}.{key}: got {amount:g}, but this machine has {most:g}; ask for less, or join a cluster that '
                'has it with --address'
            )
    known = {name for node in nodes if node['Alive'] for name in names_of(node)} | {'localhost', socket.gethostname()}
    hosts = resources.get('hosts')
    if hosts and not known.intersection(hosts):
        raise ConfigError(
            f'{path}.hosts: got {", ".join(hosts)}, but without --address everything runs on this machine; join the '
            'cluster of these hosts, or submit to it with -p slurm or -p k8s'
        )
