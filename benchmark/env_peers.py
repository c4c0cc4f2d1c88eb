"""Other libraries' vectorised envs for env_bench."""

from collections.abc import Callable

import gymnasium
import numpy as np
from env_jobs import cases


def plain_loop() -> dict:
    """No library: a loop into two arrays."""

    def setup(name: str, make: Callable, num: int) -> tuple[Callable, Callable]:
        envs = [make() for _ in range(num)]
        obs = np.stack([env.reset(seed=i)[0] for i, env in enumerate(envs)])
        rewards = np.zeros(num, np.float32)

        def step(actions: np.ndarray) -> int:
            for i, action in enumerate(actions.tolist()):
                row, rewards[i], terminated, truncated, _ = envs[i].step(action)
                obs[i] = envs[i].reset()[0] if terminated or truncated else row
            return num

        return step, lambda: [env.close() for env in envs]

    return cases(setup)


def _gymnasium(build: Callable) -> Callable:
    def setup(name: str, make: Callable, num: int) -> tuple[Callable, Callable]:
        env = build(name, make, num)
        env.reset(seed=0)

        def step(actions: np.ndarray) -> int:
            env.step(actions)
            return num

        return step, env.close

    return setup


def gymnasium_sync() -> dict:
    return cases(_gymnasium(lambda name, make, num: gymnasium.vector.SyncVectorEnv([make] * num)))


def gymnasium_async() -> dict:
    return cases(_gymnasium(lambda name, make, num: gymnasium.vector.AsyncVectorEnv([make] * num)))


def gymnasium_native() -> dict:
    def build(name: str, make: Callable, num: int) -> object:
        return gymnasium.make_vec('CartPole-v1', num_envs=num, vectorization_mode='vector_entry_point')

    return cases(_gymnasium(build), ['cartpole'])


def ale() -> dict:
    def build(name: str, make: Callable, num: int) -> object:
        from ale_py.vector_env import AtariVectorEnv

        return AtariVectorEnv('pong', num, num_threads=2)

    return cases(_gymnasium(build), ['pong'])


def _envpool(kwargs: dict) -> Callable:
    def setup(name: str, make: Callable, num: int) -> tuple[Callable, Callable]:
        import envpool

        task = {'cartpole': 'CartPole-v1', 'pong': 'Pong-v5'}[name]
        env = envpool.make(task, env_type='gymnasium', num_envs=num, num_threads=2, seed=0, **kwargs)
        if 'batch_size' not in kwargs:
            env.reset()

            def step(actions: np.ndarray) -> int:
                env.step(actions)
                return num
        else:
            size = kwargs['batch_size']
            env.async_reset()

            def step(actions: np.ndarray) -> int:
                infos = env.recv()[-1]
                env.send(actions[:size], infos['env_id'])
                return size

        return step, env.close

    return setup


def envpool_sync() -> dict:
    return cases(_envpool({}), ['cartpole', 'pong'])


def envpool_async() -> dict:
    return cases(_envpool({'batch_size': 4}), ['cartpole', 'pong'])


def _sb3(cls: str) -> Callable:
    def setup(name: str, make: Callable, num: int) -> tuple[Callable, Callable]:
        from stable_baselines3.common import vec_env

        env = getattr(vec_env, cls)([make] * num)
        env.reset()

        def step(actions: np.ndarray) -> int:
            env.step(actions)
            return num

        return step, env.close

    return setup


def sb3_dummy() -> dict:
    return cases(_sb3('DummyVecEnv'))


def sb3_subproc() -> dict:
    return cases(_sb3('SubprocVecEnv'))


def _tianshou(cls: str, **kwargs: object) -> Callable:
    def setup(name: str, make: Callable, num: int) -> tuple[Callable, Callable]:
        from tianshou import env as tianshou_env

        env = getattr(tianshou_env, cls)([make] * num, **kwargs)
        env.reset()
        ready = np.arange(num)

        def step(actions: np.ndarray) -> int:
            nonlocal ready
            _, _, terminated, truncated, infos = env.step(actions[: len(ready)], ready)
            ready = np.array([info['env_id'] for info in infos])
            ended = ready[terminated | truncated]
            if len(ended):
                env.reset(ended)
            return len(ready)

        return step, env.close

    return setup


def tianshou_dummy() -> dict:
    return cases(_tianshou('DummyVectorEnv'))


def tianshou_subproc() -> dict:
    return cases(_tianshou('SubprocVectorEnv'))


def tianshou_shmem() -> dict:
    return cases(_tianshou('ShmemVectorEnv'))


def tianshou_async() -> dict:
    return cases(_tianshou('ShmemVectorEnv', wait_num=4), ['cartpole', 'sleep1ms', 'expsleep1ms'])


def _pufferlib(backend: str, **kwargs: object) -> Callable:
    def setup(name: str, make: Callable, num: int) -> tuple[Callable, Callable]:
        import pufferlib.emulation
        import pufferlib.vector

        def creator(buf: object = None, seed: int = 0) -> object:
            return pufferlib.emulation.GymnasiumPufferEnv(env_creator=make, buf=buf, seed=seed)

        env = pufferlib.vector.make(creator, num_envs=num, backend=getattr(pufferlib.vector, backend), **kwargs)
        env.reset(seed=0)

        def step(actions: np.ndarray) -> int:
            env.step(actions)
            return num

        return step, env.close

    return setup


def pufferlib_serial() -> dict:
    return cases(_pufferlib('Serial'))


def pufferlib_one() -> dict:
    return cases(_pufferlib('Multiprocessing', num_workers=1))


def pufferlib_two() -> dict:
    return cases(_pufferlib('Multiprocessing', num_workers=2))


def _di_engine(cls: str) -> Callable:
    def setup(name: str, make: Callable, num: int) -> tuple[Callable, Callable]:
        from ding.envs import DingEnvWrapper
        from ding.envs import env_manager as managers

        env = getattr(managers, cls)([lambda: DingEnvWrapper(make())] * num, getattr(managers, cls).default_config())
        env.launch()

        def step(actions: np.ndarray) -> int:
            return len(env.step({i: actions[i] for i in env.ready_obs}))

        return step, env.close

    return setup


def di_engine_base() -> dict:
    return cases(_di_engine('BaseEnvManager'))


def di_engine_sync() -> dict:
    return cases(_di_engine('SyncSubprocessEnvManager'))
