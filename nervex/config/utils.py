"""What a parallel config of the older form calls in its last line; and hosts for either form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from nervex.config.parallel_form import KINDS, check_keys, is_older_form, place, role_sections, serial_form
from nervex.config.tree import plain_copy
from nervex.loader.problems import Problems
from nervex.utils.slurm_helper import node_list
from nervex.utils.system_helper import find_free_port

ANY_HOST = '0.0.0.0'


def parallel_transform(
    cfg: Mapping, coordinator_host: str = ANY_HOST, learner_host: str = ANY_HOST, actor_host: str = ANY_HOST
) -> EasyDict:
    """
    Overview:
        A parallel config of either form as today's sections: the serial ones and ``parallel``. It may be called twice.
    Arguments:
        - coordinator_host (:obj:`str`): kept for older configs: the coordinator is where the program is started
        - learner_host, actor_host (:obj:`str`): machines of the learners and actors, separated by commas; ``0.0.0.0``
            leaves the choice to Ray
    """
    problems = Problems()
    given = plain_copy(cfg)
    if is_older_form(given):
        check_keys(given, problems)
        problems.raise_if_any()
        given = set_host_port(given, coordinator_host, learner_host, actor_host)
    result = serial_form(given, problems)
    problems.raise_if_any()
    for kind, hosts in zip(KINDS, (learner_host, actor_host)):
        place(result, kind, hosts.split(','))
    return EasyDict(result)


def parallel_transform_slurm(
    cfg: Mapping, coordinator_host: str = ANY_HOST, learner_node: str = ANY_HOST, actor_node: str = ANY_HOST
) -> EasyDict:
    """As ``parallel_transform``, with node names in slurm's short form, such as ``'gpu[1-3],login1'``."""
    return parallel_transform(cfg, coordinator_host, ','.join(node_list(learner_node)), ','.join(node_list(actor_node)))


#: The same, with the names of Kubernetes nodes.
parallel_transform_k8s = parallel_transform


def set_host_port(
    cfg: Mapping, coordinator_host: str = ANY_HOST, learner_host: str = ANY_HOST, actor_host: str = ANY_HOST
) -> dict[str, Any]:
    """
    Overview:
        A copy of a config of the older form without ``'auto'``: hosts are those given (several, separated by commas,
        are dealt out in turn), ports are free ones of this machine; a learner section with ``repeat_num`` above 1 gets
        a list of ports and an ``aggregator`` section.
    """
    result = plain_copy(cfg)
    _fill(result['coordinator'].setdefault('interaction', {}), coordinator_host)
    for kind, hosts in zip(KINDS, (learner_host.split(','), actor_host.split(','))):
        for index, name in enumerate(role_sections(result, kind)):
            section = result[name]
            _fill(section, hosts[index % len(hosts)])
            if section.get('repeat_num', 1) > 1 and isinstance(section['port'], int):
                aggregator = {'master': {'host': section['host'], 'port': section['port']}}
                result[f'aggregator{name[len(kind) :]}'] = aggregator
                section['port'] = [find_free_port() for _ in range(section['repeat_num'])]
    return result


def set_learner_interaction_for_coordinator(cfg: Mapping, kind: str = 'learner') -> dict[str, Any]:
    """A copy whose ``coordinator.interaction.learner`` says ``{name: [name, host, port]}``."""
    result = plain_copy(cfg)
    rows = {name: [name, result[name].get('host'), result[name].get('port')] for name in role_sections(result, kind)}
    result['coordinator'].setdefault('interaction', {})[kind] = rows
    return result


def set_actor_interaction_for_coordinator(cfg: Mapping) -> dict[str, Any]:
    """A copy whose ``coordinator.interaction.actor`` says ``{name: [name, host, port]}``."""
    return set_learner_interaction_for_coordinator(cfg, 'actor')


def _fill(section: dict[str, Any], host: str) -> None:
    if section.get('host', 'auto') == 'auto':
        section['host'] = host
    if section.get('port', 'auto') == 'auto':
        section['port'] = find_free_port()
