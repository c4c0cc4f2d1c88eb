"""
Seconds until a mean greedy return of 195 over ten episodes of CartPole-v1, each library at its own best-known settings,
evaluations included; the round is the seed.

    python benchmark/solve_bench.py --rounds 5
"""

from harness import Bench, Implementation, run

BENCH = Bench(
    name='solve',
    unit='seconds to a mean return of 195 on CartPole-v1',
    implementations=[
        Implementation('nervex', 'solve_jobs:nervex', {'nervex': '-e .'}),
        Implementation('sb3', 'solve_jobs:sb3', {'stable_baselines3': 'stable-baselines3==2.9.2'}),
        Implementation('tianshou', 'solve_jobs:tianshou', {'tianshou': 'tianshou==2.0.1'}),
    ],
    cases=['dqn', 'ppo'],
    reference='sb3',
    lower_is_better=True,
    notes='The first evaluation that passes counts. nervex: `cartpole_dqn` and `cartpole_ppo` of app_zoo on the env of '
    'Gymnasium, evaluated every 400 and 512 env steps; SB3: RL Baselines3 Zoo, evaluated every 1,000; Tianshou: '
    'the DQN of its own test suite, evaluated every 1,000 (its PPO takes several times as long as SB3).',
)

if __name__ == '__main__':
    run(BENCH)
