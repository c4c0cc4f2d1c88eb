"""The jobs of ``parallel_bench.py`` in nervex: parallel mode as it is, with a commander that keeps the window."""
import time
from typing import Any

import numpy as np
import parallel_jobs as jobs

from nervex.entry.parallel_entry import parallel_pipeline
from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.parallel.actor_role import ActorRole
from nervex.parallel.ray_carrier import RayCarrier
from nervex.parallel.role import RoleSpec
from nervex.policy import CommonPolicy, batched
from nervex.utils import COMMANDER_REGISTRY, ENV_REGISTRY
from nervex.worker.coordinator.naive_commander import NaiveCommander

HERE = 'peers.parallel_nervex'
FOUND: dict[str, Any] = {}


class _Watching(NaiveCommander):
    """Counts from the first task on, when the roles are built."""

    clock: Any = None

    def get_actor_task(self, eval_flag: bool = False, force: bool = False) -> Any:
        self.clock = self.clock or self.first()
        return super().get_actor_task(eval_flag, force)

    def out_of_budget(self) -> bool:
        return 'record' in FOUND


@COMMANDER_REGISTRY.register('until_195')
class UntilSolved(_Watching):
    """Ends the run when the mean of the last 100 episodes is 195."""

    def first(self) -> jobs.Solved:
        return jobs.Solved(jobs.PPO.target, jobs.PPO.limit_s)

    def update_actor_info(self, task: dict, header: Any) -> bool:
        if self.clock.add(header.returns, self._actor.total_step):
            FOUND['record'] = self.clock.record
        return False


@COMMANDER_REGISTRY.register('count_steps')
class CountSteps(_Watching):
    """Counts env steps for some seconds after a while."""

    def first(self) -> jobs.Rate:
        self._before: int | None = None
        return jobs.Rate()

    def update_actor_info(self, task: dict, header: Any) -> bool:
        if self._before is None and self.clock.seconds() > FOUND['warm_up_s']:
            self._before, self.clock = self._actor.total_step, jobs.Rate()
        elif self._before is not None and self.clock.seconds() > FOUND['seconds'] and 'record' not in FOUND:
            steps = self._actor.total_step - self._before
            FOUND['record'] = {**self.clock.record(steps), **jobs.memory(), 'staleness': self._actor.mean_staleness()}
        return False


def _run(config: dict, seed: int, commander: str, actors: int, **parallel: Any) -> dict:
    config['parallel'] = dict(import_names=[HERE], commander_type=commander, actor_num=actors, evaluator_num=0,
                              save_s=3600., **parallel)
    config['exp_name'] = 'run'
    parallel_pipeline(config, seed)
    return FOUND['record']


def ppo(seed: int) -> dict:
    s = jobs.PPO
    envs = s.actors * s.envs_per_actor
    config = {
        'env': {'env_type': 'gym', 'env_id': s.env_id, 'actor_env_num': envs, 'evaluator_env_num': 1},
        'policy': {
            'policy_type': 'ppo',
            'model': {'hidden_dim_list': list(s.hidden), 'share_encoder': False, 'head_layer_num': 0,
                      'activation': 'tanh', 'ortho_init': True},
            'learn': {
                'epochs': s.epochs, 'batch_size': s.minibatch, 'learning_rate': s.learning_rate,
                'grad_clip_norm': s.grad_clip_norm,
                'algo': {'value_weight': s.value_weight, 'entropy_weight': 0., 'clip_ratio': s.clip,
                         'use_value_clip': False, 'discount_factor': s.gamma, 'gae_lambda': s.gae_lambda},
            },
        },
        'actor': {'n_sample': envs * s.rollout},
    }
    return _run(config, seed, 'until_195', s.actors)


class SleepEnv(BaseEnv):
    """Two milliseconds a step, episodes of 200 steps."""

    shape: tuple[int, ...] = (4, )
    dtype: Any = np.float32
    sleep_s = jobs.SLEEP_S

    def __init__(self, cfg: Any = None) -> None:
        rng = np.random.default_rng(0)
        frames = [(255 * rng.random(self.shape)).astype(self.dtype) for _ in range(8)]
        self._frames, self._steps = frames, 0

    def reset(self) -> np.ndarray:
        self._steps = 0
        return self._frames[0]

    def step(self, action: Any) -> BaseEnvTimestep:
        time.sleep(self.sleep_s)
        self._steps += 1
        done = self._steps >= 200
        info = {'final_eval_reward': 200.} if done else {}
        return BaseEnvTimestep(self._frames[self._steps % 8], np.ones(1, np.float32), done, info)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        pass

    def close(self) -> None:
        pass

    def info(self) -> BaseEnvInfo:
        limits = {'min': 0, 'max': 255, 'dtype': self.dtype}
        return BaseEnvInfo(
            agent_num=1, obs_space=EnvElementInfo(self.shape, limits),
            act_space=EnvElementInfo((2, ), {'min': 0, 'max': 2, 'dtype': np.int64}),
            rew_space=EnvElementInfo((1, ), {'min': 0., 'max': 1., 'dtype': np.float32}),
        )


ENV_REGISTRY.register('bench_sleep', SleepEnv)


def sleep(seed: int, actors: int) -> dict:
    """A value method: it overlaps, so that an actor waits for nobody; 64 updates a second or so on the side."""
    FOUND.update(warm_up_s=2., seconds=jobs.SLEEP_SECONDS)
    config = {
        'env': {'env_type': 'bench_sleep', 'import_names': [HERE], 'actor_env_num': actors, 'evaluator_env_num': 1},
        'policy': {'policy_type': 'dqn', 'model': {'hidden_dim_list': [64, 64]},
                   'learn': {'train_step': 1, 'batch_size': 64}},
        'replay_buffer': {'agent': {'meta_maxlen': 10_000}},
        'actor': {'n_sample': 25},
    }
    return _run(config, seed, 'count_steps', actors)


CASES = {'ppo': ppo, **{f'sleep{n}': (lambda seed, n=n: sleep(seed, n)) for n in jobs.SLEEP_ACTORS}}
