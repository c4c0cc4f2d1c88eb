"""
One run in a process of its own: prints its record as the last line, JSON.

    python benchmark/learning/one.py '{"config": "cartpole_dqn", "side": "nervex", "seed": 0, "overrides": []}'
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch


def nervex_run() -> Callable[..., dict[str, Any]]:
    """Training by ``serial_pipeline``, as the command line does it."""
    from nervex.entry import serial_pipeline

    def train(config: str, seed: int, overrides: list[str]) -> dict[str, Any]:
        result = serial_pipeline(config, seed=seed, overrides=tuple(overrides))
        return {
            'solved': result.solved,
            'final_return': result.final_return,
            'env_steps': result.env_steps,
            'updates': result.train_iters,
            'win_rate': result.win_rate,
            'history': [[steps, mean] for _, steps, mean in result.history],
        }

    return train


def sb3_run() -> Callable[..., dict[str, Any]]:
    """The same by Stable-Baselines3."""
    import sb3_run as peer

    return peer.train


def epymarl_run() -> Callable[..., dict[str, Any]]:
    """The same by EPyMARL, in a process of its own."""
    import epymarl_run as peer

    return peer.train


def processor_s() -> float:
    """Seconds of processor time, those of children that have ended included."""
    return sum(os.times()[:4])


def main() -> None:
    job = json.loads(sys.argv[1])
    kept = job.pop('folder', None)
    torch.set_num_threads(1)
    run = {'nervex': nervex_run, 'sb3': sb3_run, 'epymarl': epymarl_run}[job['side']]()  # imports are not on the clock
    with contextlib.nullcontext(kept) if kept else tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        wall, cpu = time.perf_counter(), processor_s()
        record = run(job['config'], job['seed'], job['overrides'])
        record['wall_s'], record['cpu_s'] = time.perf_counter() - wall, processor_s() - cpu
        os.chdir('/')
    record.update(job, date=time.strftime('%Y-%m-%d'), machine=f'{os.cpu_count()} cores ({platform.machine()})')
    wanted = ('torch', 'gymnasium', 'mujoco', 'ale-py', 'stable-baselines3', 'sb3-contrib')
    have = {d.metadata['Name'].replace('_', '-'): d.version for d in importlib.metadata.distributions()}
    record['versions'] = {name: have[name] for name in wanted if name in have}
    print('\n' + json.dumps(record), flush=True)


if __name__ == '__main__':
    main()
