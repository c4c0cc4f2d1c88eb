"""
What an agent without a config learns in a minute: ``python benchmark/front_door.py [--seconds 60] [--seed 0] [ENV]``

Each row is ``Agent(policy, env, seed=seed).learn()`` in a process of its own, stopped by Ctrl-C after so many seconds
of its CPU time (one thread), which a busy machine hardly changes. Returns are means over 20 episodes of other seeds
than those of the evaluations that chose the best checkpoint: of the untrained policy, and of the best one; at random,
over what the probe plays.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

RUNS = {
    'FrozenLake-v1': 'dqn',
    'Taxi-v4': 'dqn',
    'Blackjack-v1': 'ppo',
    'CliffWalking-v1': 'dqn',
    'CartPole-v1': 'ppo',
    'Acrobot-v1': 'ppo',
    'MountainCar-v0': 'dqn',
    'MountainCarContinuous-v0': 'ppo',
    'Pendulum-v1': 'sac',
    'LunarLander-v3': 'ppo',
    'BipedalWalker-v3': 'ppo',
    'minigrid:MiniGrid-Empty-5x5-v0': 'ppo',
}
EPISODES = 20
OTHER_SEED = 7_000_000


def one(env: str, policy: str, seconds: float, seed: int) -> str:
    """A row of the table; runs in a process of its own."""
    from nervex import Agent
    from nervex.run.probe import probe

    agent = Agent(policy, env, seed=seed)
    random = probe(agent.config, OTHER_SEED, seconds=5.0).returns
    agent.seed = OTHER_SEED
    before = agent.evaluate(EPISODES).mean
    agent.seed = seed
    signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    start, used = time.monotonic(), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    solved = False
    with contextlib.suppress(KeyboardInterrupt):
        solved = agent.learn(progress=False).solved
    signal.setitimer(signal.ITIMER_PROF, 0)
    wall, used = time.monotonic() - start, time.process_time() - used
    agent.seed = OTHER_SEED
    after = agent.evaluate(EPISODES)
    at = sum(random) / len(random) if random else float('nan')
    limit = agent.config.evaluator.stop_val
    wanted = '-' if limit is None else f'{limit:g}'
    return (
        f'| {env.rpartition(":")[2]} | {policy} | {seed} | {at:.1f} | {before:.1f} | {after.mean:.1f} | {wanted} | '
        f'{"yes" if solved else "no"} | {agent.steps:,} | {used:.0f} | {wall:.0f} |'
    )


def main() -> None:
    """Print the table, a row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('--seconds', type=float, default=60.0)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--policy', help='another policy than that of the table')
    parser.add_argument('--row', action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('envs', nargs='*', metavar='ENV')
    args = parser.parse_args()
    if args.row:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            print(one(args.envs[0], args.policy, args.seconds, args.seed), flush=True)
        return
    head = 'env | policy | seed | random | untrained | best | solved at | solved | env steps | CPU s | wall s'
    print(f'| {head} |\n|{"---|" * 11}', flush=True)
    for env in args.envs or RUNS:
        command = [sys.executable, __file__, '--row', '--seconds', str(args.seconds), '--seed', str(args.seed)]
        command += ['--policy', args.policy or RUNS[env], env]
        subprocess.run(command, check=True, env={**os.environ, 'OMP_NUM_THREADS': '1'})


if __name__ == '__main__':
    main()
