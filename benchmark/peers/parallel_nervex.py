"""The jobs of ``parallel_bench.py`` in nervex: parallel mode as it is, with a commander that keeps the window."""

import os
import time
from dataclasses import replace
from typing import Any

import numpy as np
import parallel_jobs as jobs
import torch

from nervex.config import compile_config
from nervex.data import Batch
from nervex.entry.parallel_entry import parallel_pipeline
from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.parallel.blocks import load_weights
from nervex.parallel.learner_role import LearnerRole
from nervex.parallel.ray_carrier import RayCarrier
from nervex.parallel.role import ActorRole, RoleSpec
from nervex.policy import DQNPolicy
from nervex.utils import COMM_ACTOR_REGISTRY, COMMANDER_REGISTRY, ENV_REGISTRY, POLICY_REGISTRY
from nervex.worker.coordinator.naive_commander import NaiveCommander

HERE = 'peers.parallel_nervex'
FOUND: dict[str, Any] = {}


class _Watching(NaiveCommander):
    """Counts from the first task on, when the first roles are built; where speed is measured, all of them."""

    clock: Any = None
    waits_for_all = False

    def get_actor_task(self, eval_flag: bool = False, force: bool = False) -> Any:
        FOUND['tasks'] = FOUND.get('tasks', 0) + 1
        if self.clock is None and (not self.waits_for_all or FOUND['tasks'] == FOUND['actors']):
            self.clock = self.first()
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

    waits_for_all = True

    def first(self) -> jobs.Rate:
        self._before: int | None = None
        return jobs.Rate()

    def update_actor_info(self, task: dict, header: Any) -> bool:
        if self.clock is None:
            return False
        if self._before is None and self.clock.seconds() > FOUND['warm_up_s']:
            self._before, self.clock = self._actor.total_step, jobs.Rate()
        elif self._before is not None and self.clock.seconds() > FOUND['seconds'] and 'record' not in FOUND:
            steps = self._actor.total_step - self._before
            FOUND['record'] = {**self.clock.record(steps), **jobs.memory(), 'staleness': self._actor.mean_staleness()}
        return False


def _run(config: dict, seed: int, commander: str, actors: int, **parallel: Any) -> dict:
    config['parallel'] = dict(
        import_names=[HERE], commander_type=commander, actor_num=actors, evaluator_num=0, save_s=3600.0, **parallel
    )
    config['exp_name'] = 'run'
    FOUND['actors'] = actors
    parallel_pipeline(config, seed)
    return FOUND['record']


def ppo(seed: int) -> dict:
    s = jobs.PPO
    envs = s.actors * s.envs_per_actor
    config = {
        'env': {'env_type': 'gym', 'env_id': s.env_id, 'actor_env_num': envs, 'evaluator_env_num': 1},
        'policy': {
            'policy_type': 'ppo',
            'model': {
                'hidden_dim_list': list(s.hidden),
                'share_encoder': False,
                'head_layer_num': 0,
                'activation': 'tanh',
                'ortho_init': True,
            },
            'learn': {
                'epochs': s.epochs,
                'batch_size': s.minibatch,
                'learning_rate': s.learning_rate,
                'grad_clip_norm': s.grad_clip_norm,
                'algo': {
                    'value_weight': s.value_weight,
                    'entropy_weight': 0.0,
                    'clip_ratio': s.clip,
                    'use_value_clip': False,
                    'discount_factor': s.gamma,
                    'gae_lambda': s.gae_lambda,
                },
            },
        },
        'actor': {'n_sample': envs * s.rollout},
    }
    return _run(config, seed, 'until_195', s.actors)


class SleepEnv(BaseEnv):
    """Two milliseconds a step, episodes of 200 steps."""

    shape: tuple[int, ...] = (4,)
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
        info = {'final_eval_reward': 200.0} if done else {}
        return BaseEnvTimestep(self._frames[self._steps % 8], np.ones(1, np.float32), done, info)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        pass

    def close(self) -> None:
        pass

    def __repr__(self) -> str:
        return type(self).__name__

    def info(self) -> BaseEnvInfo:
        limits = {'min': 0, 'max': 255, 'dtype': self.dtype}
        return BaseEnvInfo(
            agent_num=1,
            obs_space=EnvElementInfo(self.shape, limits),
            act_space=EnvElementInfo((2,), {'min': 0, 'max': 2, 'dtype': np.int64}),
            rew_space=EnvElementInfo((1,), {'min': 0.0, 'max': 1.0, 'dtype': np.float32}),
        )


ENV_REGISTRY.register('bench_sleep', SleepEnv)


def sleep(seed: int, actors: int) -> dict:
    """A value method: it overlaps, so that an actor waits for nobody; 64 updates a second or so on the side."""
    FOUND.update(warm_up_s=2.0, seconds=jobs.SLEEP_SECONDS)
    config = {
        'env': {'env_type': 'bench_sleep', 'import_names': [HERE], 'actor_env_num': actors, 'evaluator_env_num': 1},
        'policy': {
            'policy_type': 'dqn',
            'model': {'hidden_dim_list': [64, 64]},
            'learn': {'train_step': 1, 'batch_size': 64},
        },
        'replay_buffer': {'agent': {'meta_maxlen': 10_000}},
        'actor': {'n_sample': 25},
    }
    return _run(config, seed, 'count_steps', actors)


def impala(seed: int) -> dict:
    s = jobs.IMPALA
    envs, sequences = s.actors * s.envs_per_actor, s.batch // s.fragment
    FOUND.update(warm_up_s=s.warm_up_s, seconds=s.seconds)
    config = {
        'env': {'env_type': 'gym', 'env_id': s.env_id, 'actor_env_num': envs, 'evaluator_env_num': 1},
        'policy': {
            'policy_type': 'impala',
            'model': {
                'hidden_dim_list': list(s.hidden),
                'share_encoder': True,
                'head_layer_num': 0,
                'activation': 'tanh',
            },
            'learn': {
                'train_step': 1,
                'batch_size': sequences,
                'learning_rate': s.learning_rate,
                'grad_clip_norm': s.grad_clip_norm,
                'algo': {'value_weight': s.value_weight, 'entropy_weight': 0.0, 'discount_factor': s.gamma},
            },
            'collect': {'unroll_len': s.fragment, 'traj_len': s.fragment},
        },
        'replay_buffer': {'agent': {'meta_maxlen': 4 * sequences}},
        'actor': {'n_sample': sequences},
    }
    return _run(config, seed, 'count_steps', s.actors)


class FrameEnv(SleepEnv):
    """Frames that cost nothing to make."""

    shape = jobs.FRAMES
    dtype = np.uint8
    sleep_s = 0.0

    def step(self, action: Any) -> BaseEnvTimestep:
        self._steps += 1
        done = self._steps >= 200
        info = {'final_eval_reward': 200.0} if done else {}
        return BaseEnvTimestep(self._frames[self._steps % 8], np.ones(1, np.float32), done, info)


ENV_REGISTRY.register('bench_frames', FrameEnv)


@POLICY_REGISTRY.register('bench_random')
class RandomPolicy(DQNPolicy):
    """DQN that does not look before it acts: what is measured is the way of the observations."""

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        return {'action': torch.zeros(len(data_id), dtype=torch.int64)}

    def _forward_learn(self, data: dict) -> dict:
        return {'total_loss': torch.zeros(())}

    def _monitor_vars_learn(self) -> list[str]:
        return ['total_loss']


@COMM_ACTOR_REGISTRY.register('bench_premade')
class PremadeRole(ActorRole):
    """An actor whose samples are there already, as those of ``bare_ray.Camera`` are."""

    def __init__(self, spec: RoleSpec) -> None:
        super().__init__(spec)
        rows = jobs.FRAME_BLOCK
        frames = np.random.default_rng(0).integers(0, 255, (rows, *jobs.FRAMES), np.uint8)
        block = Batch.of({'obs': frames, 'action': np.zeros(rows), 'reward': np.zeros(rows)})
        info = {'step': rows, 'duration': 1e-3}
        self.actor.generate_data = lambda *args, **kwargs: (block, info)


def images(seed: int, role: str = 'bench_premade') -> dict:
    """From the actors into the learner's buffer; with the role 'ray' 4 envs an actor are stepped, too."""
    FOUND.update(warm_up_s=4.0, seconds=jobs.FRAME_SECONDS)
    config = {
        'env': {'env_type': 'bench_frames', 'import_names': [HERE], 'actor_env_num': 8, 'evaluator_env_num': 1},
        'policy': {
            'policy_type': 'bench_random',
            'import_names': [HERE],
            'model': {'obs_dim': list(jobs.FRAMES), 'hidden_dim_list': [64]},
            'learn': {'batch_size': 1},
        },
        'replay_buffer': {'agent': {'meta_maxlen': 20 * jobs.FRAME_BLOCK}},
        'actor': {'n_sample': 8},
    }
    block = {'rows': jobs.FRAME_BLOCK}
    record = _run(config, seed, 'count_steps', 2, ratio=1e-5, comm_actor_type=role, block=block)  # hardly an update
    megabytes = float(np.prod(jobs.FRAMES)) / 1e6  # of an observation
    return {**record, 'per_s': record['per_s'] * megabytes, 'per_cpu_s': record['per_cpu_s'] * megabytes}


class TakingRole(ActorRole):
    """An actor that is only given weights."""

    def give(self, weights: dict) -> int:
        load_weights(self.actor.policy, weights)
        return 1


def weights(seed: int) -> dict:
    """The learner hands its weights out, and four actors take them, by the code of a run."""
    width = int((jobs.WEIGHTS_MB * 1e6 / 4 / 2) ** 0.5)
    config = compile_config(
        {
            'env': {'env_type': 'gym', 'env_id': 'CartPole-v1', 'actor_env_num': 4, 'evaluator_env_num': 1},
            'policy': {'policy_type': 'dqn', 'model': {'hidden_dim_list': [width, width, width], 'dueling': False}},
            'actor': {'n_sample': 4},
        }
    )
    seconds = []
    with RayCarrier(None, 500) as carrier:
        spec = RoleSpec('learner', 0, 0, 1, config, seed, os.path.abspath('run'), 1, ckpt_path=os.path.abspath('ckpt'))
        learner = carrier.spawn('learner', LearnerRole, {'spec': spec}, {'num_cpus': 1})
        actors = []
        for index in range(jobs.WEIGHTS_ACTORS):
            mine = replace(spec, kind='actor', index=index, count=jobs.WEIGHTS_ACTORS)
            actors.append(carrier.spawn(mine.name, TakingRole, {'spec': mine}, {'num_cpus': 1}))
        for role in (learner, *actors):
            carrier.get(role.call('ready'))
        request = {'updates': 0, 'envstep': 0, 'setting': None, 'notes': None, 'publish': True}
        for _ in range(jobs.WEIGHTS_REPEATS):
            start = time.perf_counter()
            _, reference = learner.call('learn', [], request, returns=2)
            for answer in [one.call('give', reference) for one in actors]:
                carrier.get(answer)
            seconds.append(time.perf_counter() - start)
    return dict(ms=1e3 * float(np.median(seconds[3:])), size_mb=width * width * 8 / 1e6)


CASES = {
    'ppo': ppo,
    'impala': impala,
    'images': images,
    'weights': weights,
    'stepped': lambda seed: images(seed, 'ray'),
    **{f'sleep{n}': (lambda seed, n=n: sleep(seed, n)) for n in jobs.SLEEP_ACTORS},
}
