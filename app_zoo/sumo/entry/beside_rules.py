"""
Traffic lights by rule, and by policies of finished runs, on the same traffic that no run has trained on.

    python -m app_zoo.sumo.entry.beside_rules --net wj1 [--runs FOLDER ...] [--episodes 10]
    python -m app_zoo.sumo.entry.beside_rules --net wj3 --per-hour 300 --longest-s 30 [--runs FOLDER ...]

``--picture FILE.svg`` draws the first of these episodes, too: by the longest queue, and by the first run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from app_zoo.sumo.entry.picture import Watched, draw
from app_zoo.sumo.envs import SumoTeamEnv
from nervex.entry.cli import told_in_one_message
from nervex.entry.options import at_least_one
from nervex.run.compare import bootstrap_interval

Rule = Callable[[SumoTeamEnv, int, dict[str, np.ndarray]], np.ndarray]
SEED = 90_000  # of the first episode: far from those of runs
FIXED_S = (10, 20, 30)
LONGEST = 'longest queue'


def fixed_time(steps: int) -> Rule:
    """Every phase for so many steps, whatever comes."""
    return lambda env, step, obs: np.array([(step // steps) % len(c.greens) for c in env.net.crossings])


def longest_queue(env: SumoTeamEnv, step: int, obs: dict[str, np.ndarray]) -> np.ndarray:
    """The phase for which most cars stand; the present one if none stands."""
    return np.array([now if not queue.any() else queue.argmax() for now, queue in zip(env.phase, env.queues())])


def of_run(folder: str) -> Rule:
    """The greedy policy of a run's best checkpoint."""
    from nervex.run.build import load_policy
    from nervex.run.folder import checkpoint_file
    from nervex.worker.actor.rows import as_array

    policy = load_policy(checkpoint_file(folder))
    mode, is_team = policy.eval_mode, 'team' in (policy.action_kinds or ())

    def rule(env: SumoTeamEnv, step: int, obs: dict[str, np.ndarray]) -> np.ndarray:
        if step == 0:
            mode.reset([0])
        data_id, data = mode.data_preprocess({0: obs if is_team else obs['global_state']})
        return as_array(mode.forward(data_id, data)['action'])[0]

    return rule


def play(env: SumoTeamEnv, rule: Rule, seed: int) -> Watched:
    """One episode: what was to be seen after each decision, and its last ``info``."""
    obs, standing, phases = env.reset(seed=seed), [], []
    while True:
        obs, _, done, info = env.step(rule(env, len(phases), obs))
        standing.append(env.standing())
        phases.append(env.phase)
        if done:
            return Watched(standing, phases, info)


def table(net: str, infos: dict[str, list[dict[str, float]]]) -> list[str]:
    """A line a rule; ``shorter`` is by how much its waits are below those of the longest queue, episode by episode."""
    waits = {name: np.array([info['mean_wait'] for info in each]) for name, each in infos.items()}
    columns = ('mean wait, s', 'least', 'most', 'shorter, s (95 % interval)', 'cars arrived')
    lines = [f'| {net}, {len(waits[LONGEST])} episodes | {" | ".join(columns)} |', '|---|' + '---:|' * len(columns)]
    for name, wait in waits.items():
        shorter = waits[LONGEST] - wait
        low, high = bootstrap_interval(shorter)
        gain = '' if name == LONGEST else f'{shorter.mean():.2f} ({low:.2f} to {high:.2f})'
        arrived = np.mean([info['arrived'] for info in infos[name]])
        lines.append(f'| {name} | {wait.mean():.2f} | {wait.min():.2f} | {wait.max():.2f} | {gain} | {arrived:.0f} |')
    return lines


@told_in_one_message()
def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--net', default='wj1', help='wj1, wj3, or a .net.xml')
    parser.add_argument(
        '--per-hour', type=float, metavar='CARS', help="cars that enter on a road, if not the env's 400"
    )
    parser.add_argument('--longest-s', type=int, metavar='SECONDS', help='after which a phase makes way')
    parser.add_argument('--runs', nargs='*', default=[], metavar='FOLDER', help='runs whose policies play')
    parser.add_argument('--episodes', type=at_least_one, default=10)
    parser.add_argument('--picture', metavar='FILE.svg', help='queues and phases of the first episode')
    options = parser.parse_args(args)
    given = {'per_hour': options.per_hour, 'longest_s': options.longest_s}
    env = SumoTeamEnv({'net': options.net} | {name: value for name, value in given.items() if value is not None})
    step_s = env._cfg.step_s
    rules = {f'fixed time, {s} s': fixed_time(s // step_s) for s in FIXED_S} | {LONGEST: longest_queue}
    rules |= {folder: of_run(folder) for folder in options.runs}
    seen = {name: [play(env, rule, SEED + k) for k in range(options.episodes)] for name, rule in rules.items()}
    env.close()
    print('\n'.join(table(options.net, {name: [episode.info for episode in each] for name, each in seen.items()})))
    if options.picture:
        drawn = [LONGEST, *options.runs[:1]]
        picture = draw([(name, seen[name][0]) for name in drawn], step_s, env.net.crossings)
        Path(options.picture).write_text(picture, encoding='utf-8')
        print(f'written: {options.picture}')


if __name__ == '__main__':
    main()
