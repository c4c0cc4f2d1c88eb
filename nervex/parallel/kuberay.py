"""The manifest of a run for Kubernetes: a ConfigMap with its config, and a RayJob for KubeRay."""

from __future__ import annotations

import copy
import math
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from easydict import EasyDict

from nervex.config.save import config_text
from nervex.parallel.pace import Plan, make_plan
from nervex.parallel.submission import TEMPLATES, Demand, arguments, demands
from nervex.utils.errors import NervexError

_FOLDER = '/etc/nervex'  # where the template puts the config
_RUNS = '/runs'
_MINE = 0.001  # of a group's own resource, that a role asks for: it leads the role to the group


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
    job['spec']['entrypoint'] = _entrypoint(k8s, options, make_plan(cfg))
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


def _entrypoint(k8s: Any, options: Mapping[str, Any], plan: Plan) -> str:
    inner = arguments({**options, 'config': f'{_FOLDER}/config.yaml', 'override': ()}, plan)
    command = shlex.join(['python', '-m', 'nervex.entry.cli', *inner, '--address', 'auto'])
    return f'cd {_RUNS} && {command}' if k8s.claim else command


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


def apply(text: str) -> str:
    """Give the manifest to ``kubectl``; answers what it said."""
    if shutil.which('kubectl') is None:
        raise NervexError('there is no kubectl here; --dry-run prints the manifest, for kubectl apply -f - elsewhere')
    done = subprocess.run(['kubectl', 'apply', '-f', '-'], input=text, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise NervexError(f'kubectl apply ended with code {done.returncode}')
    return done.stdout.strip()
