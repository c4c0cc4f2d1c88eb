"""What a run wants from a cluster: the command that runs there, and the machines that it needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from easydict import EasyDict

from nervex.config import compile_config, parallel_transform, read_config
from nervex.parallel.pace import Plan, make_plan, resources_of
from nervex.utils import COMMANDER_REGISTRY

TEMPLATES = Path(__file__).resolve().parents[1] / 'scripts'
KINDS = ('learner', 'actor', 'evaluator')


@dataclass(frozen=True)
class Demand:
    """How many roles of a kind there are and what each of them holds."""

    kind: str
    count: int
    cpus: float
    gpus: float
    hosts: tuple[str, ...]


def compile_for_cluster(config: Any, overrides: Iterable[str]) -> EasyDict:
    """The complete config of a run elsewhere."""
    given = parallel_transform(read_config(config) if isinstance(config, str) else config)
    return compile_config(given, overrides=overrides)


def demands(cfg: EasyDict) -> list[Demand]:
    """What the roles of a run hold."""
    plan, found = make_plan(cfg), []
    runs = COMMANDER_REGISTRY.get(cfg.commander.commander_type).learners(cfg.commander)  # that share the machines
    for kind, count in zip(KINDS, (plan.learners, plan.actors, plan.evaluators)):
        role = resources_of(cfg, kind)
        hosts = role['hosts'] or (cfg.parallel.resources.actor.hosts if kind == 'evaluator' else None) or ()
        found.append(Demand(kind, runs * count, role['num_cpus'], role['num_gpus'], tuple(hosts)))
    return found


def per_node(cfg: EasyDict, nodes: list[str] | int) -> tuple[int, int]:
    """
    Overview:
        CPUs and GPUs that every node must have, for as many nodes, or for these by name.
    Arguments:
        - nodes (:obj:`list[str] | int`): names, where hosts are named in the config
    """
    if isinstance(nodes, int):
        roles = demands(cfg)
        cpus = sum(role.count * role.cpus for role in roles) + 1  # the coordinator's
        return math.ceil(cpus / nodes), math.ceil(sum(role.count * role.gpus for role in roles) / nodes)
    cpus_of, gpus_of = dict.fromkeys(nodes, 0.0), dict.fromkeys(nodes, 0.0)
    cpus_of[nodes[0]] += 1
    for role in demands(cfg):
        places = role.hosts or tuple(nodes)
        for index in range(role.count):
            cpus_of[places[index % len(places)]] += role.cpus
            gpus_of[places[index % len(places)]] += role.gpus
    return math.ceil(max(cpus_of.values())), math.ceil(max(gpus_of.values()))


def arguments(options: Mapping[str, Any], plan: Plan) -> list[str]:
    """
    Overview:
        The arguments of the command that runs on the cluster, from those of the command that the user typed. How many
        actors there are was decided by the machines that were asked for, and not by the one that it runs on.
    """
    found = ['-m', 'parallel', '-p', 'local']
    for name, flag in (('config', '-c'), ('seed', '-s'), ('resume', '--resume'), ('load', '--load')):
        if options.get(name) is not None:
            found += [flag, str(options[name])]
    for override in options.get('override', ()):
        found += ['-o', override]
    return [*found, '-o', f'parallel.actor_num={plan.actors}']


def filled(template: str, values: Mapping[str, Any]) -> str:
    """A template's text with ``@name@`` replaced."""
    text = (TEMPLATES / template).read_text(encoding='utf-8')
    for name, value in values.items():
        text = text.replace(f'@{name}@', str(value))
    return text
