"""
The same problem by EPyMARL, with its own settings of the algorithm, from the checkout that ``EPYMARL_DIR`` names, by
the Python that ``EPYMARL_PYTHON`` names (it needs older packages than nervex).
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from nervex.config import compile_config

TESTS = 8  # evaluations on the way


def train(config: str, seed: int, overrides: list[str]) -> dict[str, Any]:
    """One run of simple_spread; answers what :mod:`one` stores."""
    cfg = compile_config(config, overrides=overrides)
    steps = cfg.commander.max_env_step
    given = dict(t_max=steps + 50, test_interval=steps // TESTS, test_nepisode=cfg.evaluator.n_episode)
    given |= dict(log_interval=steps // TESTS, use_cuda=False, seed=seed)
    env = {'env_args.time_limit': 25, 'env_args.key': 'pz-mpe-simple-spread-v3'}
    with tempfile.TemporaryDirectory() as folder:
        given['local_results_path'] = folder
        command = [os.environ['EPYMARL_PYTHON'], 'src/main.py', f'--config={cfg.policy.policy_type}']
        command += ['--env-config=gymma', 'with', *(f'{key}={value}' for key, value in {**env, **given}.items())]
        done = subprocess.run(
            command,
            cwd=Path(os.environ['EPYMARL_DIR']).expanduser(),
            capture_output=True,
            text=True,
            env={**os.environ, 'SDL_VIDEODRIVER': 'dummy', 'WANDB_MODE': 'disabled'},
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return told(done.stdout + done.stderr)


def told(log: str) -> dict[str, Any]:
    """What its log tells of a finished run."""
    parts = re.split(r'Recent Stats \| t_env:\s+(\d+)', log)[1:]
    found = [(int(at), re.search(r'test_return_mean:\s+(-?[\d.]+)', text)) for at, text in zip(parts[::2], parts[1::2])]
    history = [[at, float(mean[1])] for at, mean in found if mean]
    return {
        'solved': False,
        'final_return': history[-1][1],
        'env_steps': history[-1][0],
        'updates': None,  # not told
        'history': history,
    }
