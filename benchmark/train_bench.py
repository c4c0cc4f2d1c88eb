"""
Complete training loops at matched settings (``peers/settings.py``), env steps per second, evaluation switched off.

    python benchmark/train_bench.py --cleanrl ~/cleanrl
    python benchmark/train_bench.py --cases dqn ppo --only nervex sb3 --rounds 5
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness import Bench, Implementation, parser, run

CLEANRL_HINT = 'give --cleanrl DIR or set CLEANRL_DIR to a checkout of https://github.com/vwxyzjn/cleanrl'
IMPLEMENTATIONS = [
    Implementation('nervex', 'peers.nervex:CASES', {'nervex': '-e .'}),
    Implementation('nervex+own-env', 'peers.nervex:OWN_ENV_CASES', {'nervex': '-e .'}),
    Implementation('nervex+bfloat16', 'peers.nervex:BFLOAT16_CASES', {'nervex': '-e .'}),
    Implementation('sb3', 'peers.sb3:CASES', {'stable_baselines3': 'stable-baselines3==2.9.2'}),
    Implementation('cleanrl', 'peers.cleanrl:CASES', {'tyro': 'tyro', 'tensorboard': 'tensorboard'}),
    Implementation(
        'cleanrl+envpool',
        'peers.cleanrl:ENVPOOL_CASES',
        {'tyro': 'tyro', 'tensorboard': 'tensorboard', 'envpool': 'envpool'},
    ),
    Implementation('tianshou', 'peers.tianshou:CASES', {'tianshou': 'tianshou==2.0.1'}),
]
BENCH = Bench(
    name='train',
    unit='env steps per second of the training loop',
    implementations=[one for one in IMPLEMENTATIONS if one.name not in ('cleanrl+envpool', 'nervex+bfloat16')],
    cases=['dqn', 'dqn1', 'ppo', 'sac', 'td3', 'ddpg'],
    reference='sb3',
    notes='Settings: `peers/settings.py`. Random warm-up steps are inside the clock, building nets and envs is not.',
)


def run_loops(bench: Bench, memory: Callable[[int], str] | None = None) -> None:
    """Measure training loops as the command line says; ``memory`` answers --memory FRAMES instead."""
    options = parser(bench)
    options.add_argument('--cleanrl', metavar='DIR', default=os.environ.get('CLEANRL_DIR', ''), help='CleanRL checkout')
    if memory is not None:
        options.add_argument('--memory', type=int, metavar='FRAMES', help="only fill nervex's buffer of so many frames")
    chosen = options.parse_args()
    if memory is not None and chosen.memory:
        print(memory(chosen.memory))
        return
    folder = Path(chosen.cleanrl).expanduser().resolve()
    found = bool(chosen.cleanrl) and (folder / 'cleanrl' / 'dqn.py').is_file()
    os.environ['CLEANRL_DIR'] = str(folder)
    implementations = [
        one if found or not one.name.startswith('cleanrl') else replace(one, skip=CLEANRL_HINT)
        for one in bench.implementations
    ]
    run(replace(bench, implementations=implementations), chosen)


if __name__ == '__main__':
    run_loops(BENCH)
