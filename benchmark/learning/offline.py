"""
Learns from recorded episodes of three grades by each policy that is made for them, and writes the tables of
``docs/results/offline.md``.

    python benchmark/learning/offline.py                    # everything that is missing
    python benchmark/learning/offline.py --body hopper      # of one body
    python benchmark/learning/offline.py --page             # write the page from what is there

Episodes are of random actions, of a player half trained, and of one trained, both as they draw their actions while
they learn: ``nervex collect RUN --acts sampled``. Data that is there (``--data FOLDER``) is not made again, nor is a
run that is in ``benchmark/learning/records/offline_BODY.jsonl``.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from one import processor_s  # noqa: E402

PAGE = HERE.parents[1] / 'docs' / 'results' / 'offline.md'
SEEDS = (0, 1, 2)


def ends(updates: int) -> tuple[str, ...]:
    """The settings by which a run is over after so many updates."""
    return 'evaluator.stop_val=null', f'evaluator.eval_freq={updates}', f'commander.max_train_iter={updates}'


@dataclass(frozen=True)
class Grade:
    """Episodes of data, and the settings under which their player is trained; without any it plays random actions."""

    episodes: int
    player: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Body:
    """What is learned: by whom the data is played, and which config each method has, with what differs from it."""

    name: str
    env: tuple[str, ...]
    player: str
    seed: int
    updates: int
    episodes_to_judge: int
    grades: dict[str, Grade]
    methods: dict[str, tuple[str, tuple[str, ...]]]

    @property
    def records(self) -> Path:
        return HERE / 'records' / f'offline_{self.name}.jsonl'

    def overrides(self, method: str) -> tuple[str, ...]:
        """All that differs from the config in a run."""
        return *self.env, *ends(self.updates), *self.methods[method][1]


BODIES = {
    'pendulum': Body(
        'pendulum',
        env=(),
        player='pendulum_sac',
        seed=0,
        updates=3_000,
        episodes_to_judge=20,
        grades={
            'random': Grade(50),
            'medium': Grade(50, ('evaluator.stop_val=-900', 'evaluator.eval_freq=25')),
            'expert': Grade(50, ('evaluator.stop_val=-200', 'evaluator.eval_freq=25')),
        },
        methods={
            'behaviour cloning': ('pendulum_td3_bc', ('policy.learn.algo.bc_alpha=0',)),
            'TD3+BC': ('pendulum_td3_bc', ('policy.learn.algo.bc_alpha=2.5',)),
            'CQL': ('pendulum_cql', ('policy.learn.algo.cql_alpha=5', 'policy.learn.algo.cql_samples=10')),
            'implicit Q-learning': ('pendulum_implicit_q', ('env.manager.norm_obs=True', *ends(10_000))),
        },
    ),
    'hopper': Body(
        'hopper',
        env=('env.env_id=Hopper-v5',),
        player='mujoco_td3',
        seed=2,
        updates=20_000,
        episodes_to_judge=10,
        grades={
            'random': Grade(5_000),
            'medium': Grade(300, ('evaluator.stop_val=1000', 'commander.max_env_step=200000')),
            'expert': Grade(100, ('commander.max_env_step=200000',)),
        },
        methods={
            'behaviour cloning': ('mujoco_td3_bc', ('policy.learn.algo.bc_alpha=0',)),
            'TD3+BC': ('mujoco_td3_bc', ()),
            'CQL': ('mujoco_cql', ('policy.learn.algo.cql_samples=4',)),
            'implicit Q-learning': ('mujoco_implicit_q', ()),
        },
    ),
}


def make_data(body: Body, grade: str, folder: Path) -> None:
    """Episodes of a grade: of random play, or of a player that is trained first."""
    from nervex.entry import collect, serial_pipeline

    settings, player, acts = body.grades[grade], None, 'random'
    if settings.player is not None:
        train = (*body.env, f'exp_name={folder}_player', *settings.player)
        player, acts = serial_pipeline(body.player, seed=body.seed, overrides=train).best_checkpoint, 'sampled'
    how = {'load_path': player, 'n_episode': settings.episodes, 'folder': str(folder / 'trajs'), 'acts': acts}
    collect(body.player, seed=1, overrides=body.env, **how)


def told_of(folder: Path) -> dict[str, Any]:
    """Mean return and number of the steps in the data."""
    from nervex.data import TrajectoryDataset

    data = TrajectoryDataset(str(folder / 'trajs'))
    returns = [float(np.asarray(data.episode(k)['reward']).sum()) for k in range(len(data.lengths))]
    return {'data_return': statistics.fmean(returns), 'data_steps': int(sum(data.lengths))}


def run_one(job: dict[str, Any], data: Path) -> dict[str, Any]:
    """One offline run: its record."""
    from nervex.entry import offline_pipeline

    body = BODIES[job['body']]
    config, overrides = body.methods[job['method']][0], body.overrides(job['method'])
    folder = data / body.name / job['grade']
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as here:
        os.chdir(here)
        wall, cpu = time.perf_counter(), processor_s()
        result = offline_pipeline(config, str(folder / 'trajs'), seed=job['seed'], overrides=overrides)
        took = {'wall_s': time.perf_counter() - wall, 'cpu_s': processor_s() - cpu}
        os.chdir('/')
    told = {'return': result.final_return, 'updates': result.train_iters, **told_of(folder)}
    return {**job, **told, **took, 'overrides': list(overrides), 'date': time.strftime('%Y-%m-%d')}


def records(body: Body) -> list[dict[str, Any]]:
    """The runs that are there, as far as their settings are today's."""
    if not body.records.exists():
        return []
    found = [json.loads(line) for line in body.records.read_text(encoding='utf-8').splitlines()]
    return [r for r in found if r['method'] in body.methods and r['overrides'] == list(body.overrides(r['method']))]


def page() -> str:
    """All tables."""
    lines = [
        '# Learning from recorded episodes',
        '',
        'Written by `python benchmark/learning/offline.py`. Cells: score of the mean return in the end, mean over '
        f'{len(SEEDS)} seeds (smallest to largest); 0 is the mean return of random play, 100 that of the data of the '
        'expert.',
    ]
    return '\n'.join([*lines, *(line for body in BODIES.values() for line in _table(body))]) + '\n'


def _table(body: Body) -> list[str]:
    found = records(body)
    plays = {grade: next((r for r in found if r['grade'] == grade), None) for grade in body.grades}
    if not all(plays.values()):
        return ['', f'{body.name.capitalize()}: not measured.']
    low, high = plays['random']['data_return'], plays['expert']['data_return']
    lines = [
        '',
        f'## {body.name.capitalize()}',
        '',
        f'{body.updates:,} updates, where nothing else is said, then the mean of {body.episodes_to_judge} episodes. '
        f'Random play has {low:.0f}, the data of the expert {high:.0f}.',
        '',
        '| data | steps | its own score | ' + ' | '.join(body.methods) + ' |',
        '|---|---:|---:|' + '---:|' * len(body.methods),
    ]

    def score(value: float) -> float:
        return 100 * (value - low) / (high - low)

    for grade, own in plays.items():
        cells = []
        for method in body.methods:
            scores = [score(r['return']) for r in found if (r['grade'], r['method']) == (grade, method)]
            cells.append(_cell(scores))
        own_score = f'{score(own["data_return"]):.0f}'
        lines.append(f'| {grade} | {own["data_steps"]:,} | {own_score} | ' + ' | '.join(cells) + ' |')
    lines += ['', 'Processor seconds a run: ' + ', '.join(_seconds(found, method) for method in body.methods) + '.', '']
    players = [(grade, ' '.join(how.player)) for grade, how in body.grades.items() if how.player]
    player = ' '.join([body.player, *body.env])
    lines.append(f'Players, `{player}`, seed {body.seed}, beside the settings of the config:')
    lines += ['', *(f'- {grade}: `{how}`' for grade, how in players)]
    lines += ['', 'Settings, beside those of the config:', '']
    both = [(name, config, ' '.join(own)) for name, (config, own) in body.methods.items()]
    return [*lines, *(f'- {name}: `{config}`' + (f', `{own}`' if own else '') for name, config, own in both)]


def _cell(scores: list[float]) -> str:
    if not scores:
        return 'not measured'
    spread = f'{statistics.fmean(scores):.0f} ({min(scores):.0f} to {max(scores):.0f})'
    if len(scores) == len(SEEDS):
        return spread
    return f'{scores[0]:.0f}, 1 seed' if len(scores) == 1 else f'{spread}, {len(scores)} seeds'


def _seconds(found: list[dict[str, Any]], method: str) -> str:
    took = [r['cpu_s'] for r in found if r['method'] == method]
    return f'{method} {statistics.median(took):.0f}' if took else f'{method} not measured'


def measure(body: Body, data: Path) -> None:
    """Every run that is missing; a seed of all methods before the next."""
    have = {(r['grade'], r['method'], r['seed']) for r in records(body)}
    jobs = [(grade, method, seed) for seed in SEEDS for grade in body.grades for method in body.methods]
    for grade, method, seed in jobs:
        if (grade, method, seed) in have:
            continue
        folder = data / body.name / grade
        if not list(folder.glob('trajs/*')):
            make_data(body, grade, folder)
        job = json.dumps({'body': body.name, 'grade': grade, 'method': method, 'seed': seed})
        command = [sys.executable, __file__, '--data', str(data), '--one', job]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f'{job}: FAILED: {(done.stderr.strip().splitlines() or ["no message"])[-1]}', flush=True)
            continue
        line = done.stdout.strip().splitlines()[-1]
        with body.records.open('a', encoding='utf-8') as file:
            file.write(line + '\n')
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', type=Path, default=Path('runs/offline'), help='folder of the data')
    parser.add_argument('--body', choices=BODIES, nargs='+', default=list(BODIES), help='whose runs')
    parser.add_argument('--page', action='store_true', help='run nothing, write the page')
    parser.add_argument('--one', help=argparse.SUPPRESS)  # a job, as JSON
    options = parser.parse_args()
    data = options.data.resolve()
    if options.one:
        print('\n' + json.dumps(run_one(json.loads(options.one), data)))
        return
    for name in [] if options.page else options.body:
        measure(BODIES[name], data)
    PAGE.write_text(page(), encoding='utf-8')
    print(f'wrote {PAGE}')


if __name__ == '__main__':
    main()
