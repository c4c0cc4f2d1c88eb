"""
Complete training loops at matched settings (``peers/settings.py``), env steps per second, evaluation switched off.

    python benchmark/train_bench.py --cleanrl ~/cleanrl
    python benchmark/train_bench.py --cases dqn ppo --only nervex sb3 --rounds 5
"""

import os
from dataclasses import replace
from pathlib import Path

from harness import Bench, Implementation, parser, run

CLEANRL_HINT = 'give --cleanrl DIR or set CLEANRL_DIR to a checkout of https://github.com/vwxyzjn/cleanrl'
BENCH = Bench(
    name='train',
    unit='env steps per second of the training loop',
    implementations=[
        Implementation('nervex', 'peers.nervex:CASES', {'nervex': '-e .'}),
        Implementation('nervex+own-env', 'peers.nervex:OWN_ENV_CASES', {'nervex': '-e .'}),
        Implementation('sb3', 'peers.sb3:CASES', {'stable_baselines3': 'stable-baselines3==2.9.2'}),
        Implementation('cleanrl', 'peers.cleanrl:CASES', {'tyro': 'tyro', 'tensorboard': 'tensorboard'}),
        Implementation('tianshou', 'peers.tianshou:CASES', {'tianshou': 'tianshou==2.0.1'}),
    ],
    cases=['dqn', 'dqn1', 'ppo', 'sac', 'td3', 'ddpg'],
    reference='sb3',
    notes='Settings: `peers/settings.py`. Random warm-up steps are inside the clock, building nets and envs is not.',
)


def main() -> None:
    options = parser(BENCH)
    options.add_argument('--cleanrl', metavar='DIR', default=os.environ.get('CLEANRL_DIR', ''), help='CleanRL checkout')
    chosen = options.parse_args()
    folder = Path(chosen.cleanrl).expanduser().resolve()
    found = bool(chosen.cleanrl) and (folder / 'cleanrl' / 'dqn.py').is_file()
    os.environ['CLEANRL_DIR'] = str(folder)
    implementations = [
        one if found or one.name != 'cleanrl' else replace(one, skip=CLEANRL_HINT) for one in BENCH.implementations
    ]
    run(replace(BENCH, implementations=implementations), chosen)


if __name__ == '__main__':
    main()
