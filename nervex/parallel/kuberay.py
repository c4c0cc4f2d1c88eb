"""The manifest of a run for Kubernetes: a ConfigMap with its config, and a RayJob for KubeRay."""

from __future__ import annotations

import copy
import math
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import yaml
from easydict import EasyDict

from nervex.config.save import config_text
from nervex.parallel.plan import Plan, make_plan
from nervex.parallel.submission import TEMPLATES, Demand, arguments, demands
from nervex.utils.errors import NervexError

_FOLDER = '/etc/nervex'
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
    pod = cluster['headGroupSpec']['template']['spec']
    pod['volumes'][0]['configMap']['name'] = f'{k8s.name}-config'
    if k8s.claim:
        pod['volumes'].append({'name': 'runs', 'persistentVolumeClaim': {'claimName': k8s.claim}})
    workers = [_group(k8s, pod, role) for role in demands(cfg) if role.count]
    pod['containers'] = [_container(k8s, 'ray-head', 1, 0)]
    _pin(pod, (options.get('coordinator_host'),))
    cluster['workerGroupSpecs'] = workers
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


def _group(k8s: Any, head: dict, role: Demand) -> dict:
    pod = {
        'containers': [_container(k8s, 'ray-worker', role.cpus, role.gpus)],
        'volumes': copy.deepcopy(head['volumes']),
    }
    _pin(pod, role.hosts)
    return {
        'groupName': f'{role.kind}s',
        'replicas': role.count,
        'minReplicas': role.count,
        'maxReplicas': role.count,
        'rayStartParams': {'num-cpus': str(math.ceil(role.cpus)), 'resources': f'"{{\\"nervex_{role.kind}\\": 1}}"'},
        'template': {'spec': pod},
    }


def _container(k8s: Any, name: str, cpus: float, gpus: float) -> dict:
    need: dict[str, Any] = {'cpu': str(math.ceil(cpus) or 1), 'memory': k8s.memory}
    if gpus:
        need['nvidia.com/gpu'] = str(math.ceil(gpus))
    variables = {
        'OMP_NUM_THREADS': '1',
        'RAY_worker_niceness': '0',
        'RAY_USAGE_STATS_ENABLED': '0',
        'RAY_health_check_period_ms': '1000',  # a node that does not answer three times in a row is gone
        'RAY_health_check_timeout_ms': '5000',
        'RAY_health_check_failure_threshold': '3',
    }
    mounts: list[dict[str, Any]] = [{'name': 'config', 'mountPath': _FOLDER, 'readOnly': True}]
    if k8s.claim:
        mounts.append({'name': 'runs', 'mountPath': _RUNS})
    return {
        'name': name,
        'image': k8s.image,
        'env': [{'name': key, 'value': value} for key, value in variables.items()],
        'resources': {'requests': need, 'limits': dict(need)},
        'volumeMounts': mounts,
    }


def _pin(pod: dict, hosts: Any) -> None:
    """Let a pod run on these nodes only."""
    names = [host for host in hosts if host and host != '0.0.0.0']
    if names:
        rule = {'key': 'kubernetes.io/hostname', 'operator': 'In', 'values': names}
        terms = {'nodeSelectorTerms': [{'matchExpressions': [rule]}]}
        pod['affinity'] = {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': terms}}


def apply(text: str) -> str:
    """Give the manifest to ``kubectl``; answers what it said."""
    if shutil.which('kubectl') is None:
        raise NervexError('there is no kubectl here; --dry-run prints the manifest, for kubectl apply -f - elsewhere')
    done = subprocess.run(['kubectl', 'apply', '-f', '-'], input=text, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise NervexError(f'kubectl apply ended with code {done.returncode}')
    return done.stdout.strip()
