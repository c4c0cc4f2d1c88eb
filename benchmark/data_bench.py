"""
Replay buffers: adding one and eight transitions, sampling 32 and 256, and the same with priorities, where sampling
includes the update of the sample's priorities. CartPole-size rows (100,000) and Atari-size rows (10,000 of 2 x 28 KB).

    python benchmark/data_bench.py
    python benchmark/data_bench.py --cases cart_add1 cart_s32 --only nervex sb3
"""

from data_jobs import CASES
from harness import Bench, Implementation, run

NERVEX = {'nervex': '-e .'}
FAST = {**NERVEX, 'numba': 'numba>=0.60'}
BENCH = Bench(
    name='data',
    unit='transitions per second',
    implementations=[
        Implementation('nervex', 'data_nervex:manager', FAST),
        Implementation('nervex (no numba)', 'data_nervex:plain', NERVEX),
        Implementation('nervex (new memory)', 'data_nervex:fresh', NERVEX),
        Implementation('nervex (dict of tensors)', 'data_nervex:tensors', NERVEX),
        Implementation('nervex (plain calls)', 'data_nervex:plain_calls', NERVEX),
        Implementation('nervex (frames once)', 'data_nervex:frames_once', FAST),
        Implementation('nervex.ReplayBuffer', 'data_nervex:steps', FAST),
        Implementation('sb3', 'data_peers:sb3', {'stable_baselines3': 'stable-baselines3==2.9.2'}),
        Implementation('tianshou', 'data_peers:tianshou', {'tianshou': 'tianshou==2.0.1'}),
        Implementation('cpprb', 'data_peers:cpprb', {'cpprb': 'cpprb==11.0.0'}),
        Implementation('torchrl', 'data_peers:torchrl', {'torchrl': 'torchrl==0.14.1'}),
        Implementation('list of dicts', 'data_jobs:list_of_dicts'),
        Implementation('bare arrays', 'data_jobs:array_floor'),
    ],
    cases=CASES,
    reference='sb3',
    notes='Buffers are full before the clock starts. `nervex` is BufferManager as the training loop uses it: samples '
    'come in one of two alternating batches; `new memory` gives each sample memory of its own, `dict of tensors` '
    'adds the conversion for the learner, `plain calls` are `push_data(Batch(...))` and `sample(n).to_torch()`. SB3 '
    'answers with tensors and has no priorities; it does not track time '
    "limits here, which is its faster setting. TorchRL's prioritized buffer does not load beside this torch. "
    "`list of dicts` keeps a dict of tensors per row and stacks them, like DI-engine's buffer. `bare arrays` is "
    'assignment and `take` alone.',
)

if __name__ == '__main__':
    run(BENCH)
