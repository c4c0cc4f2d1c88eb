"""The jobs of ``parallel_bench.py`` in RLlib's new API stack, the learner of PPO in the driver (its fastest way)."""

import time

import gymnasium as gym
import numpy as np
import parallel_jobs as jobs
import ray
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env


class SleepEnv(gym.Env):
    """Two milliseconds a step, episodes of 200 steps."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, config=None):
        self._obs = np.zeros(4, np.float32)

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        return self._obs, {}

    def step(self, action):
        time.sleep(jobs.SLEEP_S)
        self._steps += 1
        return self._obs, 1.0, False, self._steps >= 200, {}


class Returns(RLlibCallback):
    """Passes the return of every episode on; ``episode.get_return()`` alone is that of its last chunk."""

    def on_episode_end(self, *, episode, prev_episode_chunks=None, metrics_logger=None, **kwargs):
        total = episode.get_return() + sum(chunk.get_return() for chunk in prev_episode_chunks or [])
        metrics_logger.log_value('own_returns', total, reduce='item_series', window=10_000)


def _start():
    ray.init(**jobs.RAY, runtime_env={'env_vars': {'OMP_NUM_THREADS': '1'}})
    import torch

    torch.set_num_threads(1)


def _model(s, shared=False):
    return dict(
        model_config=DefaultModelConfig(fcnet_hiddens=list(s.hidden), fcnet_activation='tanh', vf_share_layers=shared)
    )


def ppo(seed):
    _start()
    s = jobs.PPO
    config = (
        PPOConfig()
        .environment(s.env_id)
        .env_runners(num_env_runners=s.actors, num_envs_per_env_runner=s.envs_per_actor, rollout_fragment_length='auto')
        .learners(num_learners=0)
        .rl_module(**_model(s))
        .callbacks(Returns)
        .debugging(seed=seed)
        .training(
            train_batch_size_per_learner=s.actors * s.envs_per_actor * s.rollout,
            minibatch_size=s.minibatch,
            num_epochs=s.epochs,
            lr=s.learning_rate,
            gamma=s.gamma,
            lambda_=s.gae_lambda,
            clip_param=s.clip,
            vf_loss_coeff=s.value_weight,
            entropy_coeff=0.0,
            grad_clip=s.grad_clip_norm,
            grad_clip_by='global_norm',
            vf_clip_param=1e9,
            use_kl_loss=False,
        )
    )
    algorithm = config.build_algo()
    solved, over = jobs.Solved(s.target, s.limit_s), False
    while not over:
        result = algorithm.train()['env_runners']
        returns = np.atleast_1d(result.get('own_returns', []))  # a lonely NaN where no episode ended
        over = solved.add(returns[~np.isnan(returns)], int(result['num_env_steps_sampled_lifetime']))
    return solved.record


def _impala(s, runners, envs, fragment, batch, env):
    return (
        IMPALAConfig()
        .environment(env)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=envs, rollout_fragment_length=fragment)
        .learners(num_learners=1)
        .rl_module(**_model(s, shared=True))
        .callbacks(Returns)
        .reporting(min_time_s_per_iteration=1)
        .training(
            train_batch_size_per_learner=batch,
            lr=s.learning_rate,
            vf_loss_coeff=s.value_weight,
            entropy_coeff=0.0,
            grad_clip=s.grad_clip_norm,
            grad_clip_by='global_norm',
            gamma=s.gamma,
        )
    )


def _sampled(algorithm, warm_up_s, seconds):
    def steps(before):
        return int(algorithm.train()['env_runners'].get('num_env_steps_sampled_lifetime', before))

    warm, before = jobs.Rate(), 0
    while warm.seconds() < warm_up_s or not before:
        before = steps(before)
    rate, now = jobs.Rate(), before
    while rate.seconds() < seconds:
        now = steps(now)
    return {**rate.record(now - before), **jobs.memory()}


def impala(seed):
    _start()
    s = jobs.IMPALA
    algorithm = _impala(s, s.actors, s.envs_per_actor, s.fragment, s.batch, s.env_id).debugging(seed=seed).build_algo()
    return _sampled(algorithm, s.warm_up_s, s.seconds)


def sleep(seed, actors):
    _start()
    register_env('sleep', SleepEnv)
    algorithm = _impala(jobs.IMPALA, actors, 1, 50, 500, 'sleep').debugging(seed=seed).build_algo()
    return _sampled(algorithm, 3.0, jobs.SLEEP_SECONDS)


def weights(seed):
    """``sync_weights`` to every runner, waiting for their answers."""
    _start()
    width = int((jobs.WEIGHTS_MB * 1e6 / 4) ** 0.5)  # of the policy; the value net stays at home
    config = (
        PPOConfig()
        .environment('CartPole-v1')
        .env_runners(num_env_runners=jobs.WEIGHTS_ACTORS)
        .learners(num_learners=0)
        .debugging(seed=seed)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[width, width], vf_share_layers=False))
    )
    algorithm = config.build_algo()
    size_mb = sum(p.numel() * p.element_size() for p in algorithm.get_module().parameters()) / 1e6
    seconds = []
    for _ in range(jobs.WEIGHTS_REPEATS):
        start = time.perf_counter()
        algorithm.env_runner_group.sync_weights(
            from_worker_or_learner_group=algorithm.learner_group, timeout_seconds=60.0, inference_only=True
        )
        seconds.append(time.perf_counter() - start)
    return dict(ms=1e3 * float(np.median(seconds[3:])), size_mb=size_mb)


CASES = {
    'ppo': ppo,
    'impala': impala,
    'weights': weights,
    **{f'sleep{n}': (lambda seed, n=n: sleep(seed, n)) for n in jobs.SLEEP_ACTORS},
}
