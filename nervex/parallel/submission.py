"""
Runs on a cluster: what they want from it, the command that runs there, and how they are handed over.

``-p slurm`` fills in a batch script, ``-p k8s`` a manifest: a ConfigMap with the config, and a RayJob for KubeRay.
"""

from __future__ import annotations

import copy
import itertools
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from easydict import EasyDict

from nervex.config import compile_config, parallel_transform, read_config
from nervex.config.save import config_text
from nervex.parallel.pace import make_plan, resources_of
from nervex.utils import COMMANDER_REGISTRY, NervexError

TEMPLATES = Path(__file__).resolve().parents[1] / 'scripts'
SCRIPT = 'nervex_slurm_job.sh'
_WAIT_S = 180.0  # for the nodes of a job to join
_FOLDER = '/etc/nervex'  # where the template of the manifest puts the config
_RUNS = '/runs'
_MINE = 0.001  # of a group's own resource, that a role asks for: it leads the role to the group


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
    for kind, count in (('learner', plan.learners), ('actor', plan.actors), ('evaluator', plan.evaluators)):
        role = resources_of(cfg, kind)
        hosts = role['hosts'] or (cfg.parallel.resources.actor.hosts if kind == 'evaluator' else None) or ()
        found.append(Demand(kind, runs * count, role['num_cpus'], role['num_gpus'], tuple(hosts)))
    return found


def _arguments(cfg: EasyDict, options: Mapping[str, Any]) -> list[str]:
    """
    Overview:
        The arguments of the command that runs on the cluster, from those of the command that the user typed. How many
        actors there are was decided by the machines that were asked for, and not by the one that it runs on.
    """
    found = ['-m', 'parallel', '-p', 'local']
    for name, flag in (('config', '-c'), ('seed', '-s'), ('resume', '--resume'), ('load', '--load')):
        if options.get(name) is not None:
            found += [flag, str(options[name])]
    found += ['--trust'] if options.get('trust') else []
    for override in [*options.get('override', ()), f'parallel.actor_num={make_plan(cfg).actors}']:
        found += ['-o', override]
    for name, flag in (('learner_host', '-lh'), ('actor_host', '-ah')):
        if options.get(name) not in (None, '0.0.0.0'):
            found += [flag, options[name]]
    return found


def _handed_over(command: list[str], missing: str, **how: Any) -> str:
    """What a program of the cluster answers; an error if it fails, or with the text ``missing`` if it is not here."""
    if shutil.which(command[0]) is None:
        raise NervexError(missing)
    done = subprocess.run(command, text=True, **how)
    if done.returncode:
        raise NervexError(f'{shlex.join(command)} ended with code {done.returncode}')
    return (done.stdout or '').strip()


# ---- slurm ----
def slurm_script(cfg: EasyDict, options: Mapping[str, Any]) -> str:
    """
    Overview:
        The text of the batch script.
    Arguments:
        - cfg (:obj:`EasyDict`): the complete config
        - options (:obj:`Mapping`): those of the command line; ``config`` must mean the same on the nodes
    """
    slurm, head = cfg.parallel.slurm, options.get('coordinator_host') or ''
    named = [host for role in demands(cfg) for host in role.hosts]
    nodes: list[str] = list(dict.fromkeys(([head] if head else []) + named))
    # roles without hosts may need more nodes than those that are named
    count = max(slurm.nodes or len(nodes) or 1, len(nodes))
    cpus, gpus = _per_node(demands(cfg), nodes if nodes and count == len(nodes) else range(count))
    cpus, gpus = slurm.cpus_per_node or cpus, gpus if slurm.gpus_per_node is None else slurm.gpus_per_node
    given = [
        ('job-name', 'nervex'),
        ('partition', slurm.partition),
        ('account', slurm.account),
        ('time', slurm.hours and math.ceil(60 * slurm.hours)),
        ('nodes', count),
        ('nodelist', ','.join(nodes) or None),
        ('ntasks-per-node', 1),
        ('cpus-per-task', cpus),
        ('gpus-per-node', gpus or None),
        ('output', 'nervex-%j.out'),
        ('open-mode', 'append'),
        ('signal', 'B:USR1@120'),
    ]
    directives = [f'#SBATCH --{name}={shlex.quote(str(value))}' for name, value in given if value is not None]
    directives.append('#SBATCH --requeue')
    directives += [f'#SBATCH {option}' for option in slurm.options]
    values = {
        'directives': '\n'.join(directives),
        'setup': '\n'.join(slurm.setup),
        'bin': shlex.quote(os.path.dirname(sys.executable)),
        'pythonpath': shlex.quote(os.environ.get('PYTHONPATH', '')),
        'folder': shlex.quote(os.getcwd()),
        'exp': shlex.quote(options.get('resume') or cfg.exp_name or '.'),
        'head': shlex.quote(head),
        'port': slurm.port or '$((20000 + SLURM_JOB_ID % 20000))',
        'cpus': cpus,
        'gpus': gpus,
        'object_store': cfg.parallel.object_store_mb * 2**20,
        'command': shlex.join(_arguments(cfg, options)),
    }
    text = (TEMPLATES / 'slurm_job.sh').read_text(encoding='utf-8')
    for name, value in values.items():
        text = text.replace(f'@{name}@', str(value))
    return text


def _per_node(roles: list[Demand], nodes: Sequence[Any]) -> tuple[int, int]:
    """CPUs and GPUs that each of these nodes must have; the coordinator is on the first, roles take turns on theirs."""
    cpus, gpus, turns = dict.fromkeys(nodes, 0.0), dict.fromkeys(nodes, 0.0), itertools.cycle(nodes)
    cpus[next(turns)] += 1
    for role in roles:
        own = itertools.cycle([host for host in role.hosts if host in cpus])
        for _ in range(role.count):
            node = next(own, None) or next(turns)
            cpus[node] += role.cpus
            gpus[node] += role.gpus
    return math.ceil(max(cpus.values())), math.ceil(max(gpus.values()))


def submit_script(text: str) -> str:
    """
    Overview:
        Write the script to this folder and give it to slurm; within an allocation it runs at once.
    Returns:
        - said (:obj:`str`): what slurm answered
    """
    with open(SCRIPT, 'w', encoding='utf-8') as file:
        file.write(text)
    command, output = ('bash', None) if 'SLURM_JOB_ID' in os.environ else ('sbatch', subprocess.PIPE)
    missing = f'{SCRIPT} is written, but there is no {command} here: submit it on a machine of the cluster'
    return _handed_over([command, SCRIPT], missing, stdout=output)


def wait_for_nodes(address: str, count: int, timeout_s: float = _WAIT_S) -> None:
    """Wait until a Ray cluster has so many nodes."""
    from nervex.parallel.ray_cluster import import_ray

    ray, until = import_ray(), time.monotonic() + timeout_s
    ray.init(address=address, logging_level='ERROR', log_to_driver=False)
    while (alive := sum(node['Alive'] for node in ray.nodes())) < count:
        if time.monotonic() > until:
            raise NervexError(f'{alive} of {count} nodes joined {address} within {timeout_s:g} s')
        time.sleep(0.5)
    ray.shutdown()


# ---- Kubernetes ----
def manifest(cfg: EasyDict, options: Mapping[str, Any]) -> str:
    """
    Overview:
        Two YAML documents. Every role has a pod of its own, in a group of its kind; the coordinator is on the head.
    Arguments:
        - cfg (:obj:`EasyDict`): the complete config; it travels in the ConfigMap
        - options (:obj:`Mapping`): those of the command line
    """
    k8s = cfg.parallel.k8s
    job = yaml.safe_load((TEMPLATES / 'ray_job.yaml').read_text(encoding='utf-8'))
    job['metadata'].update(name=k8s.name, namespace=k8s.namespace)
    in_config = {'override': (), 'learner_host': None, 'actor_host': None}
    inner = _arguments(cfg, {**options, **in_config, 'config': f'{_FOLDER}/config.yaml'})
    command = shlex.join(['python', '-m', 'nervex.entry.cli', *inner, '--address', 'auto'])
    job['spec']['entrypoint'] = f'cd {_RUNS} && {command}' if k8s.claim else command
    cluster = job['spec']['rayClusterSpec']
    cluster['rayVersion'] = k8s.ray_version
    head = cluster['headGroupSpec']['template']
    head['spec']['volumes'][0]['configMap']['name'] = f'{k8s.name}-config'
    cluster['workerGroupSpecs'] = [_group(k8s, head['spec'], role) for role in demands(cfg) if role.count]
    head['spec'] = _pod(k8s, head['spec'], 'ray-head', 1, 0, (options.get('coordinator_host'),))
    travels = copy.deepcopy(dict(cfg))
    for role in demands(cfg):
        own = travels['parallel']['resources'][role.kind]
        own.update(custom={**(own['custom'] or {}), f'nervex_{role.kind}': _MINE}, hosts=None)
    config = {
        'apiVersion': 'v1',
        'kind': 'ConfigMap',
        'metadata': {'name': f'{k8s.name}-config', 'namespace': k8s.namespace},
        'data': {'config.yaml': config_text(travels)},
    }
    return yaml.safe_dump_all([config, job], sort_keys=False, width=120)


def _group(k8s: Any, template: dict, role: Demand) -> dict:
    return {
        'groupName': f'{role.kind}s',
        'replicas': role.count,
        'minReplicas': role.count,
        'maxReplicas': role.count,
        'rayStartParams': {'num-cpus': str(math.ceil(role.cpus)), 'resources': f'"{{\\"nervex_{role.kind}\\": 1}}"'},
        'template': {'spec': _pod(k8s, template, 'ray-worker', role.cpus, role.gpus, role.hosts)},
    }


def _pod(k8s: Any, template: dict, name: str, cpus: float, gpus: float, hosts: Iterable[str | None]) -> dict:
    """One of the pods; where hosts are named, it runs on these nodes only."""
    pod = copy.deepcopy(template)
    container = pod['containers'][0]
    need: dict[str, Any] = {'cpu': str(math.ceil(cpus) or 1), 'memory': k8s.memory}
    if gpus:
        need['nvidia.com/gpu'] = str(math.ceil(gpus))
    container.update(name=name, image=k8s.image, resources={'requests': need, 'limits': dict(need)})
    if k8s.claim:
        pod['volumes'].append({'name': 'runs', 'persistentVolumeClaim': {'claimName': k8s.claim}})
        container['volumeMounts'].append({'name': 'runs', 'mountPath': _RUNS})
    names = [host for host in hosts if host and host != '0.0.0.0']
    if names:
        rule = {'key': 'kubernetes.io/hostname', 'operator': 'In', 'values': names}
        terms = {'nodeSelectorTerms': [{'matchExpressions': [rule]}]}
        pod['affinity'] = {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': terms}}
    return pod


def apply_manifest(text: str) -> str:
    """Give the manifest to ``kubectl``; answers what it said."""
    missing = 'there is no kubectl here; --dry-run prints the manifest, for kubectl apply -f - elsewhere'
    return _handed_over(['kubectl', 'apply', '-f', '-'], missing, input=text, stdout=subprocess.PIPE)


if __name__ == '__main__':
    wait_for_nodes(sys.argv[1], int(sys.argv[2]))
