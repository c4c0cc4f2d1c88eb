"""
What runs at once cost each other: ``python benchmark/sweep_bench.py [--jobs 2] [--steps 60000] [--rounds 3] [CONFIG]``.

Each round is a sweep of one run and a sweep of as many as ``--jobs``, in turn, from the command to its table. Printed:
env steps per second of both, their ratio over the number of runs (1: none waits for another), and how many cores other
processes used meanwhile: figures of a busy machine say nothing.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
from clock import Clock

from nervex.run.curve import curve_rows
from nervex.run.folder import find_runs


def sweep(config: str, steps: int, jobs: int) -> tuple[float, float]:
    """Env steps per second, and cores that others used."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'sweep')
        options = ['--seeds', f'0-{jobs - 1}', '-j', str(jobs), '--steps', str(steps), '--out', out]
        command = [sys.executable, '-m', 'nervex.entry.cli', 'sweep', config, '-o', 'evaluator.stop_val=null', *options]
        with Clock() as clock:
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        curves = [curve_rows(os.path.join(run, 'log', 'evaluator', 'curve.csv')) for run in find_runs(out)]
        done = sum(int(rows[-1]['env_step']) for rows in curves)
        return done / clock.wall_s, max(clock.machine_s - clock.cpu_s, 0.0) / clock.wall_s


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument('config', nargs='?', default='cartpole_dqn')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--steps', type=int, default=60_000)
    parser.add_argument('--rounds', type=int, default=3)
    options = parser.parse_args()
    ratios = []
    for n in range(options.rounds):
        (one, _), (many, others) = (sweep(options.config, options.steps, jobs) for jobs in (1, options.jobs))
        ratios.append(many / one / options.jobs)
        print(
            f'round {n + 1}: {one:,.0f} env steps/s of one run, {many:,.0f} of {options.jobs}: {ratios[-1]:.3f} a run; '
            f'others used {others:.2f} cores',
            flush=True,
        )
    print(f'median {np.median(ratios):.3f} of {options.jobs} times one run (goal: at least 0.95)')


if __name__ == '__main__':
    main()
