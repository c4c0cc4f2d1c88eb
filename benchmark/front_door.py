"""
What comes of an env and a policy without a config.

``python benchmark/front_door.py [--seconds 60] [--seed 0] [ENV ...]``: what is learned in a minute. Each row is
``Agent(policy, env, seed=seed).learn()`` in a process of its own, stopped by Ctrl-C after so many seconds of its CPU
time (one thread), which a busy machine hardly changes. Returns are means over 20 episodes of other seeds than those of
the evaluations that chose the best checkpoint: of the untrained policy, and of the best one; at random, over what the
probe plays.

``python benchmark/front_door.py --start [POLICY or ENV ...]``: ``nervex train -p POLICY -e ENV`` for every policy and
every env, in seconds from the command until the run begins, by the clock and of CPU time; it is stopped by Ctrl-C after
a few seconds of CPU time more, and must end as Ctrl-C ends a run.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial

import gymnasium

TESTS = 'nervex.run.tests.own_envs'
RUNS = {
    'FrozenLake-v1': 'dqn',
    'Taxi-v4': 'dqn',
    'Blackjack-v1': 'ppo',
    'CliffWalking-v1': 'dqn',
    'CartPole-v1': 'ppo',
    'Acrobot-v1': 'ppo',
    'MountainCar-v0': 'dqn',
    'MountainCarContinuous-v0': 'ppo',
    'LunarLander-v3 (continuous)': 'ppo',
    'Pendulum-v1': 'sac',
    'LunarLander-v3': 'ppo',
    'BipedalWalker-v3': 'ppo',
    'CarRacing-v3': 'ppo',
    'minigrid:MiniGrid-Empty-5x5-v0': 'ppo',
    'Reach (Dict, MultiDiscrete)': 'dqn',
    'ReachByNumber (Dict, Box)': 'sac',
}
TEAM = 'cooperative_navigation -o env.observe_alone=true'
SUITED = {  # the rest: CartPole, or Pendulum for policies of continuous actions
    'alphazero': 'tic_tac_toe',
    'collaQ': TEAM,
    'atoc': 'cooperative_navigation -o env.continuous=true -o env.observe_positions=true',
    **dict.fromkeys(['coma', 'ippo', 'iql', 'maddpg', 'mappo', 'matd3', 'qmix', 'vdn'], 'two_step'),
}
EPISODES = 20
OTHER_SEED = 7_000_000
STARTED = '; Ctrl-C saves'
MORE_S = 2.0  # of CPU time that a run goes on after its start


def row(*cells: object) -> None:
    """Print a row of a table."""
    print(f'| {" | ".join(map(str, cells))} |', flush=True)


def env_of(name: str) -> object:
    """The id that a name in the table is, or what makes the env."""
    first, _, more = name.partition(' (')
    if more == 'continuous)':
        return partial(gymnasium.make, first, continuous=True)
    if more:
        from nervex.run.tests import own_envs

        return getattr(own_envs, first)
    return name


# ---- what is learned ----
def one(name: str, policy: str, seconds: float, seed: int) -> None:
    """A row of the table; runs in a process of its own."""
    from nervex import Agent
    from nervex.run.probe import probe

    agent = Agent(policy, env_of(name), seed=seed)
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
    after = agent.evaluate(EPISODES).mean
    at = sum(random) / len(random) if random else float('nan')
    limit = agent.config.evaluator.stop_val
    wanted = '-' if limit is None else f'{limit:g}'
    returns = f'{at:.1f}', f'{before:.1f}', f'{after:.1f}', wanted, 'yes' if solved else 'no'
    row(name.removeprefix('minigrid:'), policy, seed, *returns, f'{agent.steps:,}', f'{used:.0f}', f'{wall:.0f}')


def learned(args: argparse.Namespace) -> None:
    """The table, a row as soon as it is measured."""
    head = 'env', 'policy', 'seed', 'random', 'untrained', 'best', 'solved at', 'solved', 'env steps', 'CPU s', 'wall s'
    row(*head)
    row(*['---'] * len(head))
    for env in args.names or RUNS:
        command = [sys.executable, __file__, '--row', '--seconds', str(args.seconds), '--seed', str(args.seed)]
        command += ['--policy', args.policy or RUNS[env], env]
        subprocess.run(command, check=True, env={**os.environ, 'OMP_NUM_THREADS': '1'})


# ---- how soon it starts ----
def pairs() -> dict[str, tuple[str, str]]:
    """Each policy and each env -> the policy and what ``-e`` takes."""
    from nervex.utils import POLICY_REGISTRY

    found = {}
    for policy in POLICY_REGISTRY.query():
        kinds = POLICY_REGISTRY.get(policy).action_kinds
        usual = 'CartPole-v1' if kinds is None or 'discrete' in kinds else 'Pendulum-v1'
        found[policy] = policy, SUITED.get(policy, usual)
    for env, policy in RUNS.items():
        first, _, more = env.partition(' (')
        by_name = f'{first} -o env.make_kwargs.continuous=true' if more == 'continuous)' else f'{TESTS}:{first}'
        found[env] = policy, by_name if more else env
    return found


def start(policy: str, env: str, options: list[str]) -> tuple[float, float, int, str]:
    """Seconds by the clock and of CPU time until the run begins, the exit code, and what was said last."""
    clock, used, said = time.monotonic(), None, []
    command = [sys.executable, '-m', 'nervex', 'train', '-p', policy, '-e', env, '-s', '0', *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            said.append(line.rstrip())
            if STARTED in line:
                used, wall = cpu_of(process.pid), time.monotonic() - clock
                while process.poll() is None and cpu_of(process.pid) < used + MORE_S:
                    time.sleep(0.1)
                process.send_signal(signal.SIGINT)
        code = process.wait()
    return (wall, used, code, said[-1]) if used is not None else (float('nan'), float('nan'), code, said[-1])


def cpu_of(pid: int) -> float:
    """Seconds of CPU time of a process."""
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        fields = file.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def started(args: argparse.Namespace) -> None:
    """The table, a row as soon as it is measured."""
    row('policy', 'env', 'wall s', 'CPU s', 'exit code')
    row(*['---'] * 5)
    known = pairs()
    for name in args.names or known:
        policy, what = known[name]
        env, *options = what.split()
        wall, used, code, last = start(policy, env, options)
        ended = code if code in (0, 130) else f'{code}: {last}'
        row(policy, name if name in RUNS else env, f'{wall:.1f}', f'{used:.1f}', ended)


def main() -> None:
    """One of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--seconds', type=float, default=60.0)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--policy', help='another policy than that of the table')
    parser.add_argument('--start', action='store_true', help='how soon runs begin')
    parser.add_argument('--row', action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('names', nargs='*', metavar='NAME')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.start or args.row:
            os.chdir(folder)
        if args.row:
            one(args.names[0], args.policy, args.seconds, args.seed)
        else:
            (started if args.start else learned)(args)


if __name__ == '__main__':
    main()
