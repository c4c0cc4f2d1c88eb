"""
Complete training loops of teams at matched settings (``peers/settings.py``): cooperative navigation with three agents,
env steps (of the whole team) per second, evaluation switched off.

    python benchmark/multiagent_bench.py --epymarl ~/epymarl --epymarl-python ~/epymarl-venv/bin/python

EPyMARL needs older packages than nervex; `benchmark/README.md` says how to make it a virtual environment.
"""

import os
from dataclasses import replace
from pathlib import Path

from harness import Bench, Implementation, parser, run

HINT = 'give --epymarl DIR, a checkout of https://github.com/uoe-agents/epymarl, and --epymarl-python, who can run it'
BENCH = Bench(
    name='multiagent',
    unit='env steps per second of the training loop of a team',
    implementations=[
        Implementation('nervex', 'peers.nervex_teams:CASES', {'nervex': '-e .'}),
        Implementation('nervex+vector', 'peers.nervex_teams:VECTOR_CASES', {'nervex': '-e .'}),
        Implementation('nervex+mpe2', 'peers.nervex_teams:MPE2_CASES', {'nervex': '-e .', 'mpe2': 'mpe2'}),
        Implementation('epymarl', 'peers.epymarl:CASES'),
    ],
    cases=['qmix', 'mappo'],
    reference='epymarl',
    notes='`nervex` steps as many envs as EPyMARL does (QMIX one, MAPPO ten), `nervex+vector` eight and ten as one '
    'vectorised env, `nervex+mpe2` as `nervex` but with the env that EPyMARL runs. Updates an env step are equal.',
)


def main() -> None:
    options = parser(BENCH)
    options.add_argument('--epymarl', metavar='DIR', default='', help='EPyMARL checkout')
    options.add_argument('--epymarl-python', metavar='FILE', default='', help='the Python that can run it')
    chosen = options.parse_args()
    os.environ['EPYMARL_DIR'] = str(Path(chosen.epymarl).expanduser().resolve())
    os.environ['EPYMARL_PYTHON'] = str(Path(chosen.epymarl_python).expanduser().absolute())
    found = chosen.epymarl and chosen.epymarl_python
    implementations = [
        one if found or one.name != 'epymarl' else replace(one, skip=HINT) for one in BENCH.implementations
    ]
    run(replace(BENCH, implementations=implementations), chosen)


if __name__ == '__main__':
    main()
