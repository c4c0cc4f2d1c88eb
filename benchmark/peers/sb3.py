"""The matched training loops in Stable-Baselines3: ``model.learn`` with logging and progress output off."""

import gymnasium as gym
import numpy as np
from clock import Clock
from peers import settings
from stable_baselines3 import DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from torch import nn


def _dqn(clock: Clock, s: settings.DQNSettings) -> int:
    model = DQN(
        'MlpPolicy',
        gym.make(s.env_id),
        learning_rate=s.learning_rate,
        buffer_size=s.buffer_size,
        learning_starts=s.warm_up,
        batch_size=s.batch_size,
        gamma=s.gamma,
        train_freq=s.update_every,
        gradient_steps=1,
        target_update_interval=s.target_copy_every,
        exploration_fraction=s.epsilon_fraction,
        exploration_final_eps=s.epsilon_end,
        policy_kwargs={'net_arch': list(s.hidden)},
        seed=clock.round,
        device='cpu',
    )
    with clock:
        model.learn(s.env_steps)
    expected = (s.env_steps - s.warm_up) // s.update_every
    assert abs(model._n_updates - expected) <= 1, (model._n_updates, expected)
    return model.num_timesteps


def dqn(clock: Clock) -> int:
    return _dqn(clock, settings.DQN)


def dqn1(clock: Clock) -> int:
    return _dqn(clock, settings.DQN_1_TO_1)


def ppo(clock: Clock) -> int:
    s = settings.PPO
    model = PPO(
        'MlpPolicy',
        make_vec_env(s.env_id, n_envs=s.envs),
        learning_rate=s.learning_rate,
        n_steps=s.rollout,
        batch_size=s.batch_size,
        n_epochs=s.epochs,
        gamma=s.gamma,
        gae_lambda=s.gae_lambda,
        clip_range=s.clip,
        ent_coef=s.entropy_weight,
        vf_coef=s.value_weight,
        max_grad_norm=s.grad_clip_norm,
        seed=clock.round,
        policy_kwargs={'net_arch': {'pi': list(s.hidden), 'vf': list(s.hidden)}, 'activation_fn': nn.Tanh},
        device='cpu',
    )
    with clock:
        model.learn(s.env_steps)
    return model.num_timesteps


def sac(clock: Clock) -> int:
    s = settings.SAC
    model = SAC(
        'MlpPolicy',
        gym.make(s.env_id),
        learning_rate=s.learning_rate,
        buffer_size=s.buffer_size,
        learning_starts=s.warm_up,
        batch_size=s.batch_size,
        tau=s.tau,
        gamma=s.gamma,
        train_freq=1,
        gradient_steps=1,
        policy_kwargs={'net_arch': list(s.hidden)},
        seed=clock.round,
        device='cpu',
    )
    with clock:
        model.learn(s.env_steps)
    assert abs(model._n_updates - (s.env_steps - s.warm_up)) <= 1, model._n_updates
    return model.num_timesteps


def _deterministic(clock: Clock, kind: type, s: settings.DeterministicSettings, **more) -> int:
    model = kind(
        'MlpPolicy',
        gym.make(s.env_id),
        learning_rate=s.learning_rate,
        buffer_size=s.buffer_size,
        learning_starts=s.warm_up,
        batch_size=s.batch_size,
        tau=s.tau,
        gamma=s.gamma,
        train_freq=1,
        gradient_steps=1,
        action_noise=NormalActionNoise(np.zeros(1), np.full(1, s.exploration_sigma)),
        policy_kwargs={'net_arch': list(s.hidden)},
        seed=clock.round,
        device='cpu',
        **more,
    )
    with clock:
        model.learn(s.env_steps)
    assert abs(model._n_updates - (s.env_steps - s.warm_up)) <= 1, model._n_updates
    return model.num_timesteps


def ddpg(clock: Clock) -> int:
    return _deterministic(clock, DDPG, settings.DDPG)


def td3(clock: Clock) -> int:
    s = settings.TD3
    return _deterministic(
        clock, TD3, s, policy_delay=s.actor_every, target_policy_noise=s.target_sigma, target_noise_clip=s.target_clip
    )


CASES = {'dqn': dqn, 'dqn1': dqn1, 'ppo': ppo, 'sac': sac, 'td3': td3, 'ddpg': ddpg}
