"""nervex's env managers for env_bench, in the block form that the actor uses."""

from collections.abc import Callable
from typing import Any

import numpy as np
from env_jobs import cases

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.envs import GymEnv
from nervex.worker.actor.env_manager import create_env_manager

IDS = {'cartpole': 'CartPole-v1'}


def _manager(kind: str, own_env: bool = False, **cfg: Any) -> Callable:
    def setup(name: str, make: Callable, num: int) -> tuple[Callable, Callable]:
        if own_env:
            env_fn, env_cfg = CartPoleEnv, dict(max_episode_steps=500)
        else:
            env_fn, env_cfg = GymEnv, dict(env_id=IDS[name]) if name in IDS else dict(env_fn=make)
        if kind == 'vector' and name == 'pong':
            env_cfg = dict(env_id='ALE/Pong-v5', vector_kwargs=dict(num_threads=2))
        manager = create_env_manager(kind, env_fn, [env_cfg] * num, cfg)
        manager.seed(0, dynamic_seed=True)
        manager.launch()
        return lambda actions: _step(manager, actions), manager.close

    return setup


def _step(manager: Any, actions: np.ndarray) -> int:
    ids, _ = manager.observe()
    return len(manager.advance(ids, actions if len(ids) == len(actions) else actions[: len(ids)]))


def base() -> dict:
    return cases(_manager('base'))


def base_own() -> dict:
    return cases(_manager('base', own_env=True), ['cartpole'])


def hybrid() -> dict:
    return cases(_manager('sync_subprocess', hybrid=True))


def hybrid_own() -> dict:
    return cases(_manager('sync_subprocess', own_env=True, hybrid=True), ['cartpole'])


def sync() -> dict:
    return cases(_manager('sync_subprocess'))


def asynchronous() -> dict:
    return cases(_manager('async_subprocess', wait_num=4))


def thread() -> dict:
    return cases(_manager('thread', wait_num=4), ['sleep1ms', 'expsleep1ms'])


def vector() -> dict:
    return cases(_manager('vector'), ['cartpole', 'pong'])
