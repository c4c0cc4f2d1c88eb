"""
The first 500,000 frames of Pong by PPO, by nervex, Stable-Baselines3 and CleanRL at equal settings (CleanRL's, the step
size constant; the page tells what is not): what the games had that ended while collecting, sampled actions, in parts of
50,000 frames.

    python benchmark/learning/first_frames.py --cleanrl ~/cleanrl      # everything that is missing, then the page
    python benchmark/learning/first_frames.py --page                   # write the page from what is there

The environment is that of the other comparisons (``benchmark/requirements-peers.txt``). A finished run is a line of
``benchmark/learning/records/pong_first_frames.jsonl``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from one import processor_s  # noqa: E402
from rows import CLEANRL, NERVEX, SB3  # noqa: E402

STORED = HERE / 'records' / 'pong_first_frames.jsonl'
RESULTS = HERE.parents[1] / 'docs' / 'results'
SEEDS, SIDES = (0, 1), (NERVEX, SB3, CLEANRL)
SKIP = 4  # frames a step
STEPS = 123 * 1024  # whole rounds of 8 games x 128 steps: 503,808 frames
PART = 12_500  # env steps
CLIP = 0.1
COMMAND = 'python benchmark/learning/first_frames.py'

Games = list[tuple[int, float]]  # env steps when a game ended, its score


def by_nervex(seed: int) -> Games:
    """Training games of ``-c atari_ppo``."""
    from nervex.config import compile_config
    from nervex.run.build import build_serial

    settings = ('policy.learn.learning_rate_schedule=constant', f'commander.max_env_step={STEPS}')
    config = compile_config('atari_ppo', overrides=(*settings, 'env.vector_kwargs.num_threads=1'))
    games: Games = []
    with build_serial(config, seed=seed) as run:
        run.learner.call_hook('before_run')
        while not run.commander.out_of_budget():
            run.commander.step()
            run.collect()
            games += [(run.actor.total_step, score) for score in run.actor.recent_returns]
            run.actor.recent_returns.clear()
            for batch in run.batches():
                run.train(batch)
    return games


def by_sb3(seed: int) -> Games:
    """The same of SB3's PPO."""
    from peers.sb3 import _pong
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    games: Games = []

    class Ends(BaseCallback):
        def _on_step(self) -> bool:
            games.extend((self.num_timesteps, i['episode']['r']) for i in self.locals['infos'] if 'episode' in i)
            return True

    settings = dict(learning_rate=2.5e-4, n_steps=128, batch_size=256, n_epochs=4, gamma=0.99, gae_lambda=0.95)
    losses = dict(clip_range=CLIP, clip_range_vf=CLIP, ent_coef=0.01, vf_coef=0.5, max_grad_norm=0.5)
    envs = _pong(8)
    envs.seed(seed)
    PPO('CnnPolicy', envs, **settings, **losses, seed=seed, device='cpu').learn(STEPS, callback=Ends())
    return games


def by_cleanrl(seed: int) -> Games:
    """The same of CleanRL's ppo_atari.py."""
    from clock import Clock
    from peers import settings
    from peers.cleanrl import _ppo
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    _ppo(Clock(seed), replace(settings.PONG_PPO, env_steps=STEPS), 'ppo_atari.py', 'PongNoFrameskip-v4')
    (path,) = Path('runs').rglob('events.out.tfevents.*')
    found = EventAccumulator(str(path), size_guidance={'scalars': 0})
    found.Reload()
    return [(point.step, point.value) for point in found.Scalars('charts/episodic_return')]


def run(side: str, seed: int) -> None:
    """One run in this process: its record is the last line that is printed."""
    import torch

    torch.set_num_threads(1)
    train: Callable[[int], Games] = {NERVEX: by_nervex, SB3: by_sb3, CLEANRL: by_cleanrl}[side]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        cpu = processor_s()
        games = train(seed)
        cpu = processor_s() - cpu
    print(json.dumps({'side': side, 'seed': seed, 'date': time.strftime('%Y-%m-%d'), 'cpu_s': cpu, 'games': games}))


def stored() -> list[dict]:
    """The runs so far."""
    return [json.loads(line) for line in STORED.read_text().splitlines()] if STORED.is_file() else []


def parts(games: Games) -> np.ndarray:
    """Mean score of the games that ended in each part; NaN where none did."""
    index = np.array([step // PART for step, _ in games])
    scores = np.array([score for _, score in games])
    return np.array([scores[index == k].mean() if (index == k).any() else np.nan for k in range(STEPS // PART)])


def page(runs: list[dict]) -> None:
    """The table, and the picture of it."""
    import matplotlib

    matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    from picture import STYLE

    figure, panel = plt.subplots(figsize=(7, 4), layout='constrained')
    frames = (np.arange(STEPS // PART) + 1) * PART * SKIP
    chosen = (1, 3, 5, 7, 9)
    head = [f'{(k + 1) * PART * SKIP // 1000:,}k' for k in chosen]
    lines = [f'| side | seeds | processor s | {" | ".join(head)} |', '|---|---|---:|' + '---:|' * len(head)]
    for side in SIDES:
        mine = [r for r in runs if r['side'] == side]
        if not mine:
            continue
        each = np.array([parts(r['games']) for r in mine])
        label, color, line = STYLE[side]
        panel.plot(frames, each.mean(0), line, color=color, label=label)
        panel.fill_between(frames, each.min(0), each.max(0), color=color, alpha=0.18, linewidth=0)
        cells = [f'{each[:, k].mean():.1f} ({each[:, k].min():.1f} to {each[:, k].max():.1f})' for k in chosen]
        seeds, cpu = ', '.join(str(r['seed']) for r in mine), np.mean([r['cpu_s'] for r in mine])
        lines.append(f'| {label} | {seeds} | {cpu:,.0f} | {" | ".join(cells)} |')
    panel.set(xlabel='frames', ylabel='score of training games', title='Pong by PPO')
    panel.legend(frameon=False)
    figure.savefig(RESULTS / 'pong_first_frames.png', dpi=110)
    text = [
        '# The first 500,000 frames of Pong by PPO',
        '',
        f'Written by `{COMMAND}`: {" to ".join(sorted({r["date"] for r in runs}))}, one thread a run, '
        'float32. 8 games, rounds of 128 steps, 4 passes in batches of 256, step size 2.5e-4 (constant), both clips '
        f"{CLIP}. Not equal: SB3 weighs the value's squared error by 0.5, the others half of it, and its clip of "
        'values takes the clipped error, theirs the larger one. Cells: score of the games (21 points at most, sampled '
        'actions) that ended in the 50,000 frames up to there, mean of the seeds (lowest to highest).',
        '',
        *lines,
        '',
        '![scores over frames](pong_first_frames.png)',
    ]
    (RESULTS / 'pong_first_frames.md').write_text('\n'.join(text) + '\n', encoding='utf-8')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cleanrl', metavar='DIR', default=os.environ.get('CLEANRL_DIR', ''), help='CleanRL checkout')
    parser.add_argument('--one', nargs=2, metavar=('SIDE', 'SEED'), help='this run alone; prints its record')
    parser.add_argument('--page', action='store_true', help='run nothing, write the page')
    options = parser.parse_args()
    if options.one:
        run(options.one[0], int(options.one[1]))
        return
    done = {(r['side'], r['seed']) for r in stored()}
    env = {**os.environ, 'CLEANRL_DIR': str(Path(options.cleanrl).expanduser().resolve()), 'OMP_NUM_THREADS': '1'}
    for seed in SEEDS if not options.page else ():
        for side in SIDES:
            if (side, seed) not in done:
                command = [sys.executable, __file__, '--one', side, str(seed)]
                out = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
                with STORED.open('a', encoding='utf-8') as file:
                    file.write(out.strip().splitlines()[-1] + '\n')
                print(f'{side} seed {seed}: done', flush=True)
    page(stored())


if __name__ == '__main__':
    main()
