"""
Self-play in connect four, moves of both sides per second: the network of ``-c connect_four_ppo`` (two layers of 256),
sampled, plays itself.

    python benchmark/selfplay_bench.py

nervex collects as a run does: the learner's side becomes training samples with advantages, the other side is played by
a snapshot. The loops only play.
"""

from harness import Bench, Implementation, run

BENCH = Bench(
    name='selfplay',
    unit='moves of connect four per second',
    implementations=[
        Implementation('nervex, 16 games', 'selfplay_jobs:nervex_16', {'nervex': '-e .'}),
        Implementation('nervex, 64 games', 'selfplay_jobs:nervex_64', {'nervex': '-e .'}),
        Implementation('nervex, 256 games', 'selfplay_jobs:nervex_256', {'nervex': '-e .'}),
        Implementation('PettingZoo loop', 'selfplay_jobs:pettingzoo', {'pettingzoo': 'pettingzoo==1.27.0'}),
        Implementation('OpenSpiel loop', 'selfplay_jobs:openspiel', {'pyspiel': 'open_spiel==2.0.2'}),
    ],
    cases=['connect_four'],
    reference='PettingZoo loop',
    notes='The same network, sampled, on both sides. The loops call it once for each move, with one row; nervex for '
    'all games at once, and makes training samples with advantages of the moves of one side.',
)

if __name__ == '__main__':
    run(BENCH)
