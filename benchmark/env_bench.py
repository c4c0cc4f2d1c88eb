"""
Vectorised envs, env frames per second: CartPole (8 and 16 envs), envs that sleep 1 ms or about 1 ms (16), Pong with the
usual preprocessing (8), and an env that does nothing but answer 28 KB of pixels (8).

    python benchmark/env_bench.py
    python benchmark/env_bench.py --cases cartpole_n8 --only 'nervex.base' 'gymnasium.SyncVectorEnv'
"""

from env_jobs import CASES
from harness import Bench, Implementation, run

NERVEX, SB3 = {'nervex': '-e .'}, {'stable_baselines3': 'stable-baselines3==2.9.2'}
TIANSHOU, PUFFER = {'tianshou': 'tianshou==2.0.1'}, {'pufferlib': 'pufferlib==3.0.0'}
DI_ENGINE = {'ding': 'DI-engine==0.5.3'}
BENCH = Bench(
    name='env',
    unit='env frames per second',
    implementations=[
        Implementation('nervex.base', 'env_nervex:base', NERVEX),
        Implementation('nervex.base, own CartPole', 'env_nervex:base_own', NERVEX),
        Implementation('nervex.sync_subprocess, hybrid', 'env_nervex:hybrid', NERVEX),
        Implementation('nervex.sync_subprocess, hybrid, own CartPole', 'env_nervex:hybrid_own', NERVEX),
        Implementation('nervex.sync_subprocess', 'env_nervex:sync', NERVEX),
        Implementation('nervex.async_subprocess (wait 4)', 'env_nervex:asynchronous', NERVEX),
        Implementation('nervex.thread (wait 4)', 'env_nervex:thread', NERVEX),
        Implementation('nervex.vector', 'env_nervex:vector', NERVEX),
        Implementation('plain loop', 'env_peers:plain_loop'),
        Implementation('gymnasium.SyncVectorEnv', 'env_peers:gymnasium_sync'),
        Implementation('gymnasium.AsyncVectorEnv', 'env_peers:gymnasium_async'),
        Implementation('gymnasium.make_vec (native)', 'env_peers:gymnasium_native'),
        Implementation('ale_py.AtariVectorEnv', 'env_peers:ale', {'ale_py': 'ale-py==0.12.1'}),
        Implementation('envpool', 'env_peers:envpool_sync', {'envpool': 'envpool==1.2.5'}),
        Implementation('envpool (async, batch 4)', 'env_peers:envpool_async', {'envpool': 'envpool==1.2.5'}),
        Implementation('sb3.DummyVecEnv', 'env_peers:sb3_dummy', SB3),
        Implementation('sb3.SubprocVecEnv', 'env_peers:sb3_subproc', SB3),
        Implementation('tianshou.DummyVectorEnv', 'env_peers:tianshou_dummy', TIANSHOU),
        Implementation('tianshou.SubprocVectorEnv', 'env_peers:tianshou_subproc', TIANSHOU),
        Implementation('tianshou.ShmemVectorEnv', 'env_peers:tianshou_shmem', TIANSHOU),
        Implementation('tianshou.ShmemVectorEnv (wait 4)', 'env_peers:tianshou_async', TIANSHOU),
        Implementation('pufferlib.Serial', 'env_peers:pufferlib_serial', PUFFER),
        Implementation('pufferlib.Multiprocessing (1 worker)', 'env_peers:pufferlib_one', PUFFER),
        Implementation('pufferlib.Multiprocessing (2 workers)', 'env_peers:pufferlib_two', PUFFER),
        Implementation('di-engine.BaseEnvManager', 'env_peers:di_engine_base', DI_ENGINE),
        Implementation('di-engine.SyncSubprocessEnvManager', 'env_peers:di_engine_sync', DI_ENGINE),
    ],
    cases=CASES,
    reference='gymnasium.SyncVectorEnv',
    notes='Actions are drawn beforehand, episodes reset by themselves, half a second counts in each cell. nervex '
    'answers with everything that a step of its managers has: final observations, infos, sums of episodes, '
    'checked shapes and finite numbers, faults watched. `own CartPole` is an env written in Python floats, '
    'which no peer has. `plain loop` is a loop into two arrays without any of that.',
)

if __name__ == '__main__':
    run(BENCH)
