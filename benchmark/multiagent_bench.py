"""
Complete training loops of teams at matched settings (``peers/settings.py``): cooperative navigation with three agents,
env steps (of the whole team) per second, evaluation switched off.

    export EPYMARL_DIR=~/epymarl EPYMARL_PYTHON=~/epymarl-venv/bin/python BENCHMARL_PYTHON=~/benchmarl-venv/bin/python
    python benchmark/multiagent_bench.py

The peers need older packages than nervex; `benchmark/README.md` says how to make them virtual environments.
"""

import os

from harness import Bench, Implementation, parser, run


def absent(*variables: str) -> str:
    """Why a peer is left out, if it is."""
    unset = [name for name in variables if name not in os.environ]
    return f'set {" and ".join(unset)}, see benchmark/README.md' if unset else ''


BENCH = Bench(
    name='multiagent',
    unit='env steps per second of the training loop of a team',
    implementations=[
        Implementation('nervex', 'peers.nervex_teams:CASES', {'nervex': '-e .'}),
        Implementation('nervex+vector', 'peers.nervex_teams:VECTOR_CASES', {'nervex': '-e .'}),
        Implementation('nervex+mpe2', 'peers.nervex_teams:MPE2_CASES', {'nervex': '-e .', 'mpe2': 'mpe2'}),
        Implementation('epymarl', 'peers.epymarl:CASES', skip=absent('EPYMARL_DIR', 'EPYMARL_PYTHON')),
        Implementation('benchmarl', 'peers.benchmarl_teams:CASES', skip=absent('BENCHMARL_PYTHON')),
    ],
    cases=['qmix', 'mappo'],
    reference='epymarl',
    notes='`nervex` steps as many envs as EPyMARL does (QMIX one, MAPPO ten), `nervex+vector` eight and ten as one '
    'vectorised env, `nervex+mpe2` as `nervex` but with the env that EPyMARL and BenchMARL run. Updates an env step '
    'are equal; the MAPPO of BenchMARL has no memory.',
)

if __name__ == '__main__':
    run(BENCH, parser(BENCH).parse_args())
