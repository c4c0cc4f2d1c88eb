"""
Learns from recorded episodes of three grades by each policy that is made for them, and writes the table
``docs/results/offline.md``.

    python benchmark/learning/offline.py            # everything that is missing
    python benchmark/learning/offline.py --page     # write the page from what is there

Random actions, a soft actor-critic half trained, and one trained, both as they draw their actions while they learn:
``nervex collect RUN --acts sampled``. Data that is there (``--data FOLDER``) is not made again, nor is a run that is in
``benchmark/learning/records/offline_pendulum.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from one import processor_s  # noqa: E402

RECORDS, PAGE = HERE / 'records' / 'offline_pendulum.jsonl', HERE.parents[1] / 'docs' / 'results' / 'offline.md'
SEEDS, EPISODES, UPDATES = (0, 1, 2), 50, 3_000
#: grade -> the mean return at which the player's training ends; None: it plays random actions
GRADES = {'random': None, 'medium': -900.0, 'expert': -200.0}


def ends(updates: int) -> tuple[str, ...]:
    """The settings by which a run is over after so many updates."""
    return 'evaluator.stop_val=null', f'evaluator.eval_freq={updates}', f'commander.max_train_iter={updates}'


ENDS = ends(UPDATES)
#: name -> config and what differs from it
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    'behaviour cloning': ('pendulum_td3_bc', ('policy.learn.algo.bc_alpha=0',)),
    'TD3+BC': ('pendulum_td3_bc', ('policy.learn.algo.bc_alpha=2.5',)),
    'CQL': ('pendulum_cql', ('policy.learn.algo.cql_alpha=5', 'policy.learn.algo.cql_samples=10')),
    'implicit Q-learning': ('pendulum_implicit_q', ('env.manager.norm_obs=True', *ends(10_000))),
}


def make_data(grade: str, folder: Path) -> None:
    """Episodes of a grade: of random play, or of a player that is trained first."""
    from nervex.entry import collect, serial_pipeline

    player, acts = None, 'random'
    if (enough := GRADES[grade]) is not None:
        train = (f'exp_name={folder}_player', f'evaluator.stop_val={enough}', 'evaluator.eval_freq=25')
        player, acts = serial_pipeline('pendulum_sac', seed=0, overrides=train).best_checkpoint, 'sampled'
    collect('pendulum_sac', seed=1, load_path=player, n_episode=EPISODES, folder=str(folder / 'trajs'), acts=acts)


def mean_return(folder: Path) -> float:
    """Of the episodes in the data."""
    from nervex.data import TrajectoryDataset

    data = TrajectoryDataset(str(folder / 'trajs'))
    returns = [float(np.asarray(data.episode(k)['reward']).sum()) for k in range(len(data.lengths))]
    return statistics.fmean(returns)


def run_one(job: dict[str, Any], data: Path) -> dict[str, Any]:
    """One offline run: its record."""
    from nervex.entry import offline_pipeline

    config, overrides = METHODS[job['method']]
    folder = data / job['grade']
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as here:
        os.chdir(here)
        wall, cpu = time.perf_counter(), processor_s()
        result = offline_pipeline(config, str(folder / 'trajs'), seed=job['seed'], overrides=(*ENDS, *overrides))
        took = {'wall_s': time.perf_counter() - wall, 'cpu_s': processor_s() - cpu}
        os.chdir('/')
    told = {'return': result.final_return, 'updates': result.train_iters, 'data_return': mean_return(folder)}
    return {**job, **told, **took, 'overrides': [*ENDS, *overrides], 'date': time.strftime('%Y-%m-%d')}


def records() -> list[dict[str, Any]]:
    """The runs that are there, as far as their settings are today's."""
    if not RECORDS.exists():
        return []
    found = [json.loads(line) for line in RECORDS.read_text(encoding='utf-8').splitlines()]
    return [r for r in found if r['method'] in METHODS and r['overrides'] == [*ENDS, *METHODS[r['method']][1]]]


def page() -> str:
    """The table: a score of 0 is the mean return of random play, 100 that of the expert's data."""
    found = records()
    plays = {grade: next((r['data_return'] for r in found if r['grade'] == grade), None) for grade in GRADES}
    low, high = plays['random'], plays['expert']
    lines = [
        '# Learning from recorded episodes',
        '',
        f'Written by `python benchmark/learning/offline.py`. Pendulum, {EPISODES} episodes of data a grade (10,000 '
        f'steps); {UPDATES:,} updates, where nothing else is said, then the mean return of 20 episodes. Cells: score, '
        f'mean over {len(SEEDS)} seeds (smallest to largest); 0 is the mean return of random play ({low:.0f}), 100 '
        f'that of the data of the expert ({high:.0f}).',
        '',
        '| data | its own score | ' + ' | '.join(METHODS) + ' |',
        '|---|---:|' + '---:|' * len(METHODS),
    ]

    def score(value: float) -> float:
        return 100 * (value - low) / (high - low)

    for grade, own in plays.items():
        cells = []
        for method in METHODS:
            scores = [score(r['return']) for r in found if (r['grade'], r['method']) == (grade, method)]
            spread = f'{statistics.fmean(scores):.0f} ({min(scores):.0f} to {max(scores):.0f})' if scores else ''
            cells.append(spread if len(scores) == len(SEEDS) else f'not measured ({len(scores)} runs)')
        lines.append(f'| {grade} | {score(own):.0f} | ' + ' | '.join(cells) + ' |')
    lines += ['', 'Processor seconds a run: ' + ', '.join(_seconds(found, method) for method in METHODS) + '.', '']
    lines += ['Settings, beside those of the config:', '']
    lines += [f'- {name}: `{config}`, `{" ".join(own)}`' for name, (config, own) in METHODS.items()]
    return '\n'.join(lines) + '\n'


def _seconds(found: list[dict[str, Any]], method: str) -> str:
    took = [r['cpu_s'] for r in found if r['method'] == method]
    return f'{method} {statistics.median(took):.0f}' if took else f'{method} not measured'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', type=Path, default=Path('runs/offline'), help='folder of the data')
    parser.add_argument('--page', action='store_true', help='run nothing, write the page')
    parser.add_argument('--one', help=argparse.SUPPRESS)  # a job, as JSON
    options = parser.parse_args()
    data = options.data.resolve()
    if options.one:
        print('\n' + json.dumps(run_one(json.loads(options.one), data)))
        return
    have = {(r['grade'], r['method'], r['seed']) for r in records()}
    jobs = [(grade, method, seed) for seed in SEEDS for grade in GRADES for method in METHODS]
    for grade, method, seed in [] if options.page else jobs:
        if (grade, method, seed) in have:
            continue
        if not list((data / grade).glob('trajs/*')):
            make_data(grade, data / grade)
        job = json.dumps({'grade': grade, 'method': method, 'seed': seed})
        command = [sys.executable, __file__, '--data', str(data), '--one', job]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f'{job}: FAILED: {(done.stderr.strip().splitlines() or ["no message"])[-1]}', flush=True)
            continue
        line = done.stdout.strip().splitlines()[-1]
        with RECORDS.open('a', encoding='utf-8') as file:
            file.write(line + '\n')
        print(line, flush=True)
    PAGE.write_text(page(), encoding='utf-8')
    print(f'wrote {PAGE}')


if __name__ == '__main__':
    main()
