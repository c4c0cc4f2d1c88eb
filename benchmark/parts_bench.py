"""
Parts that run at every step, beside the same written by hand in torch: forward passes of small networks for 1 and 8
rows, one update; and what one logged variable and one resolved config cost.

    python benchmark/parts_bench.py
"""

from harness import Bench, Implementation, run
from parts_jobs import CASES

NERVEX = {'nervex': '-e .'}
BENCH = Bench(
    name='parts',
    unit='calls per second',
    implementations=[
        Implementation('plain torch', 'parts_jobs:plain_torch'),
        Implementation('nervex', 'parts_jobs:nervex_parts', NERVEX),
        Implementation('nervex, recorded', 'parts_jobs:recorded', NERVEX),
    ],
    cases=CASES,
    reference='plain torch',
    notes='`net` and `actor_critic` are forward passes of 64-64 tanh networks, `update` is loss, gradient and Adam '
    'step of one of them for 64 rows, `log` is one variable of a logged model and `config` the resolving of the '
    'built-in CartPole config.',
)

if __name__ == '__main__':
    run(BENCH)
