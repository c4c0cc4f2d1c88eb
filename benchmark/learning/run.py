"""
Runs the reference problems with three seeds each (some with twenty) and writes what came out: ``docs/results.md``, the
pictures of learning curves beside Stable-Baselines3 and EPyMARL, and the table in the README of every app.

    python benchmark/learning/run.py                        # everything that is missing
    python benchmark/learning/run.py --rows cartpole_dqn    # of these rows (or beginnings of names)
    python benchmark/learning/run.py --pages                # write the pages from what is there
    python benchmark/learning/run.py --keep runs            # keep what the runs write, to evaluate and to film

Every finished run is stored at once in ``benchmark/learning/records/``, one line a run; what is there is not run again.
Delete a line, or give ``--again``, to measure anew. Each run is one process with one thread. EPyMARL is found by the
variables of ``epymarl_run.py``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import pages  # noqa: E402
from records import Records  # noqa: E402
from rows import EPYMARL, NERVEX, SB3, Row, all_rows  # noqa: E402

PACKAGES = (  # family of configs, what it needs, which extra brings that
    ('lunarlander', 'Box2D', 'box2d'),
    ('mujoco', 'mujoco', 'mujoco'),
    ('minigrid', 'minigrid', 'minigrid'),
    ('highway', 'highway_env', 'highway'),
    ('pointmaze', 'gymnasium_robotics', 'robotics'),
)
THREADS = ('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS')


def missing(row: Row) -> str | None:
    """How to get what a row needs and this environment has not."""
    if row.side == SB3 and importlib.util.find_spec('stable_baselines3') is None:
        return 'pip install stable-baselines3 sb3-contrib'
    if row.side == EPYMARL and not {'EPYMARL_DIR', 'EPYMARL_PYTHON'} <= os.environ.keys():
        return 'set EPYMARL_DIR to a checkout of github.com/uoe-agents/epymarl, EPYMARL_PYTHON to who can run it'
    for family, package, extra in PACKAGES:
        if row.config.startswith(family) and importlib.util.find_spec(package) is None:
            return f'pip install nervex[{extra}]'
    return None


def run_one(row: Row, seed: int, records: Records, keep: Path | None) -> str:
    """One run in a process of its own, stored; answers one line about it."""
    folder = str(keep / f'{row.name}_s{seed}') if keep else None
    job = {'config': row.config, 'side': row.side, 'seed': seed, 'overrides': list(row.overrides), 'folder': folder}
    env = {**os.environ, **dict.fromkeys(THREADS, '1')}
    env['PYTHONPATH'] = os.pathsep.join(p for p in (str(HERE.parents[1]), env.get('PYTHONPATH', '')) if p)
    command = [sys.executable, str(HERE / 'one.py'), json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ['no message']
        return f'{row.name} seed {seed}: FAILED: {last[0]}'
    record = json.loads(done.stdout.strip().splitlines()[-1])
    records.add(row, record)
    return (
        f'{row.name} seed {seed}: return {record["final_return"]:.1f} after {record["env_steps"]:,} env steps, '
        f'{record["wall_s"]:.1f} s, {record["cpu_s"]:.1f} s of processor'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rows', nargs='+', metavar='NAME', help='rows, or beginnings of their names')
    parser.add_argument('--sides', nargs='+', choices=(NERVEX, SB3, EPYMARL), help='only what these train')
    parser.add_argument('--jobs', type=int, choices=(1, 2), default=1, help='runs at a time')
    parser.add_argument('--again', action='store_true', help='also what has been run')
    parser.add_argument('--keep', type=Path, metavar='DIR', help='where the folders of runs go; else they are removed')
    parser.add_argument('--pages', action='store_true', help='run nothing, write the pages')
    options = parser.parse_args()
    keep = options.keep and options.keep.resolve()
    records = Records(HERE / 'records')
    rows = [row for row in all_rows() if not options.rows or row.name.startswith(tuple(options.rows))]
    if not rows:
        parser.error(f'no row begins with {options.rows}; there are {", ".join(row.name for row in all_rows())}')
    rows = [row for row in rows if not options.sides or row.side in options.sides]
    todo = []
    for row in [] if options.pages else rows:
        absent = missing(row)
        if absent:
            print(f'{row.name}: left out; {absent}')
            continue
        todo += [(row, seed) for seed in row.seeds if options.again or not records.has(row, seed)]
    print(f'{len(todo)} runs to do')
    with ThreadPoolExecutor(options.jobs) as pool:
        for line in pool.map(lambda job: run_one(*job, records, keep), todo):
            print(line, flush=True)
    for path in pages.write(all_rows(), records):
        print(f'written: {path}')


if __name__ == '__main__':
    main()
