"""Where roles run: on nodes that the config names, as long as one of them is there."""

from __future__ import annotations

import logging
import socket
from collections.abc import Collection
from typing import Any

from nervex.utils import ConfigError

logger = logging.getLogger(__name__)


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
