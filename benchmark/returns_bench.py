"""
Generalized advantages, 5-step returns and V-trace targets of whole rollouts (T x B), calls per second.

    python benchmark/returns_bench.py
    python benchmark/returns_bench.py --cases gae_128x8 --only nervex naive-torch-loop
"""

from harness import Bench, Implementation, run

NUMBA = {'nervex': '-e .', 'numba': 'numba>=0.60'}
TIANSHOU = {'tianshou': 'tianshou==2.0.1'}
BENCH = Bench(
    name='returns',
    unit='rollouts per second',
    implementations=[
        Implementation('nervex', 'returns_nervex:plain', {'nervex': '-e .'}),
        Implementation('nervex+hpc', 'returns_nervex:hpc', NUMBA),
        Implementation('nervex+hpc (bare kernel)', 'returns_nervex:kernels', NUMBA),
        Implementation('tianshou', 'returns_peers:tianshou', TIANSHOU),
        Implementation('tianshou (bare kernel)', 'returns_peers:tianshou_kernel', TIANSHOU),
        Implementation('sb3', 'returns_peers:sb3', {'stable_baselines3': 'stable-baselines3==2.9.2'}),
        Implementation('torchrl', 'returns_peers:torchrl', {'torchrl': 'torchrl==0.14.1'}),
        Implementation('naive-torch-loop', 'returns_jobs:CASES'),
    ],
    cases=[f'{job}_{size}' for job in ('gae', 'nstep5', 'vtrace') for size in ('128x8', '2048x1', '512x256')],
    reference='naive-torch-loop',
    notes='Before it is timed, every result is compared with a loop in double precision. `nervex+hpc` sets '
    '`nervex.enable_hpc_rl`; the bare kernels get NumPy arrays instead of tensors. Tianshou and TorchRL '
    'answer in their own layout, env by env. CleanRL and DI-engine compute GAE by the naive loop.',
)

if __name__ == '__main__':
    run(BENCH)
