"""The runs of a sweep as processes of their own, each on one core, here or as tasks of Ray."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

_CHILD = 'from nervex.entry.sweep_processes import child; child()'
_PR_SET_PDEATHSIG = 1
_POLL_S = 0.2


def child() -> None:
    """The ``nervex`` command in a process that ends with the one that started it, even if that is killed."""
    from nervex.entry.cli import main

    parent, *arguments = sys.argv[1:]
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        sys.exit('the sweep has ended')
    sys.argv = ['nervex', *arguments]
    main(arguments)


def start_process(arguments: list[str], output: str, modules: list[str]) -> subprocess.Popen:
    """
    Overview:
        A run that goes on: ``poll`` answers its exit code, ``terminate`` asks it to save its state and end.
    Arguments:
        - arguments (:obj:`list[str]`): of the ``nervex`` command
        - output (:obj:`str`): the file that what it prints is added to
        - modules (:obj:`list[str]`): where else the modules of its config lie
    """
    path = os.pathsep.join(filter(None, [os.environ.get('PYTHONPATH'), *modules]))
    os.makedirs(os.path.dirname(output), exist_ok=True)
    with open(output, 'ab') as out:
        return subprocess.Popen(
            [sys.executable, '-c', _CHILD, str(os.getpid()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': path},
            start_new_session=True,  # Ctrl-C is for the sweep, which passes it on
        )


def on_ray(address: str | None, jobs: int, stack: ExitStack) -> Callable[[list[str], str, list[str]], RayRun]:
    """
    Overview:
        What starts runs, as ``start_process`` does, as tasks of Ray, each with one core: on a cluster that is there, or
        on one of our own here, until ``stack`` closes. All machines see the folder of the sweep by the same path.
    """
    from nervex.parallel.ray_cluster import RayCluster

    cluster = RayCluster(address, jobs, object_store_mb=100)
    stack.callback(cluster.close)
    task = cluster.ray.remote(num_cpus=1, max_retries=0)(_carry_out)
    return lambda *run: RayRun(cluster.ray, task.remote(os.getcwd(), *run))


class RayRun:
    """As the process of a run, on a cluster."""

    def __init__(self, ray: Any, ref: Any) -> None:
        self._ray, self._ref = ray, ref
        self.terminate, self.kill = (partial(ray.cancel, ref, force=force) for force in (False, True))

    def poll(self) -> int | None:
        """The exit code; 1 where the task is gone with its machine."""
        if not self._ray.wait([self._ref], timeout=0)[0]:
            return None
        try:
            return self._ray.get(self._ref)
        except self._ray.exceptions.RayError:
            return 1


def _carry_out(folder: str, arguments: list[str], output: str, modules: list[str]) -> int:
    """A run, from its beginning to its end, in a worker of Ray."""
    os.chdir(folder)
    process = start_process(arguments, output, modules)
    while True:
        try:
            while (code := process.poll()) is None:
                time.sleep(_POLL_S)
            return code
        except KeyboardInterrupt:  # the task is cancelled
            process.terminate()
