"""A batch script for slurm, and handing it over."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from nervex.parallel.pace import make_plan
from nervex.parallel.submission import arguments, demands, filled, per_node
from nervex.utils.errors import NervexError

SCRIPT = 'nervex_slurm_job.sh'
_WAIT_S = 180.0  # for the nodes of a job to join


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
    all_named = bool(nodes) and count == len(nodes)
    cpus, gpus = per_node(cfg, nodes if all_named else count)
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
    return filled(
        'slurm_job.sh',
        {
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
            'command': shlex.join([*arguments(options, make_plan(cfg)), *_host_arguments(options)]),
        },
    )


def _host_arguments(options: Mapping[str, Any]) -> list[str]:
    given = (('-lh', options.get('learner_host')), ('-ah', options.get('actor_host')))
    return [part for flag, value in given if value not in (None, '0.0.0.0') for part in (flag, value)]


def submit(text: str) -> str:
    """
    Overview:
        Write the script to this folder and give it to slurm; within an allocation it runs at once.
    Returns:
        - said (:obj:`str`): what slurm answered
    """
    with open(SCRIPT, 'w', encoding='utf-8') as file:
        file.write(text)
    inside = 'SLURM_JOB_ID' in os.environ
    command = ['bash' if inside else 'sbatch', SCRIPT]
    if shutil.which(command[0]) is None:
        raise NervexError(
            f'{SCRIPT} is written, but there is no {command[0]} here: submit it on a machine of the cluster'
        )
    done = subprocess.run(command, stdout=None if inside else subprocess.PIPE, text=True)
    if done.returncode:
        raise NervexError(f'{shlex.join(command)} ended with code {done.returncode}')
    return (done.stdout or '').strip()


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


if __name__ == '__main__':
    wait_for_nodes(sys.argv[2], int(sys.argv[3]))
