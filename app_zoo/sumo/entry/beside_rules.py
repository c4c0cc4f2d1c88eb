"""
Traffic lights by rule, and by policies of finished runs, on the same traffic that no run has trained on.

    python -m app_zoo.sumo.entry.beside_rules --net wj1 [--runs FOLDER ...] [--episodes 10]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from app_zoo.sumo.envs import SumoEnv

Rule = Callable[[SumoEnv, int, np.ndarray], np.ndarray]
SEED = 90_000  # of the first episode: far from those of runs


def fixed_time(steps: int) -> Rule:
    """Every phase for so many steps, whatever comes."""
    return lambda env, step, obs: np.array([(step // steps) % len(c.greens) for c in env.net.crossings])


def longest_queue(env: SumoEnv, step: int, obs: np.ndarray) -> np.ndarray:
    """The phase for which most cars stand; the present one if none stands."""
    return np.array([now if not queue.any() else queue.argmax() for now, queue in zip(env.phase, env.queues())])


def of_run(folder: str) -> Rule:
    """The greedy policy of a run's best checkpoint."""
    from nervex.run.build import load_policy
    from nervex.run.folder import checkpoint_file

    mode = load_policy(checkpoint_file(folder)).eval_mode

    def rule(env: SumoEnv, step: int, obs: np.ndarray) -> np.ndarray:
        if step == 0:
            mode.reset([0])
        data_id, data = mode.data_preprocess({0: obs})
        return np.asarray(mode.forward(data_id, data)['action'])[0]

    return rule


def play(env: SumoEnv, rule: Rule, seed: int) -> dict[str, float]:
    """One episode; its last ``info``."""
    obs, step = env.reset(seed=seed), 0
    while True:
        obs, _, done, info = env.step(rule(env, step, obs))
        if done:
            return info
        step += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--net', default='wj1', help='wj1, wj3, or a .net.xml')
    parser.add_argument('--runs', nargs='*', default=[], metavar='FOLDER', help='runs whose policies play')
    parser.add_argument('--episodes', type=int, default=10)
    options = parser.parse_args()
    env = SumoEnv({'net': options.net})
    rules = {f'fixed time, {10 * n} s': fixed_time(n) for n in (2, 3, 4)} | {'longest queue': longest_queue}
    rules |= {folder: of_run(folder) for folder in options.runs}
    print(f'| {options.net}, {options.episodes} episodes | mean wait, s | least | most | cars arrived |')
    print('|---|---:|---:|---:|---:|')
    for name, rule in rules.items():
        infos = [play(env, rule, SEED + k) for k in range(options.episodes)]
        waits, arrived = (np.array([info[key] for info in infos]) for key in ('mean_wait', 'arrived'))
        print(f'| {name} | {waits.mean():.1f} | {waits.min():.1f} | {waits.max():.1f} | {arrived.mean():.0f} |')
    env.close()


if __name__ == '__main__':
    main()
