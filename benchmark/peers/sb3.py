"""The matched training loops in Stable-Baselines3: ``model.learn`` with logging and progress output off."""

import gymnasium as gym
import numpy as np
from clock import Clock
from peers import settings
from stable_baselines3 import DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecNormalize
from torch import nn


def _pong(envs: int) -> VecEnv:
    import ale_py  # noqa: F401, it registers the games

    return VecFrameStack(make_atari_env('PongNoFrameskip-v4', n_envs=envs), n_stack=4)


def _dqn(clock: Clock, s: settings.DQNSettings) -> int:
    images = s.env_id == 'Pong'
    model = DQN(
        'CnnPolicy' if images else 'MlpPolicy',
        _pong(s.envs) if images else gym.make(s.env_id),
        learning_rate=s.learning_rate,
        buffer_size=s.buffer_size,
        learning_starts=s.warm_up,
        batch_size=s.batch_size,
        gamma=s.gamma,
        train_freq=s.round // s.envs,
        gradient_steps=s.updates,
        target_update_interval=s.target_copy_every,
        exploration_fraction=s.epsilon_fraction,
        exploration_final_eps=s.epsilon_end,
        policy_kwargs={} if images else {'net_arch': list(s.hidden)},
        seed=clock.round,
        device='cpu',
    )
    with clock:
        model.learn(s.env_steps)
    expected = (s.env_steps - s.warm_up) // s.update_every
    assert abs(model._n_updates - expected) <= s.updates, (model._n_updates, expected)
    return model.num_timesteps


def _ppo(clock: Clock, s: settings.PPOSettings) -> int:
    images = s.env_id == 'Pong'
    envs = _pong(s.envs) if images else make_vec_env(s.env_id, n_envs=s.envs)
    net = {'net_arch': {'pi': list(s.hidden), 'vf': list(s.hidden)}, 'activation_fn': nn.Tanh}
    model = PPO(
        'CnnPolicy' if images else 'MlpPolicy',
        VecNormalize(envs, gamma=s.gamma) if s.normalize else envs,
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
        policy_kwargs={} if images else net,
        device='cpu',
    )
    with clock:
        model.learn(s.env_steps)
    return model.num_timesteps


def _sac(clock: Clock, s: settings.SACSettings) -> int:
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
    env = gym.make(s.env_id)
    size = env.action_space.shape
    model = kind(
        'MlpPolicy',
        env,
        learning_rate=s.learning_rate,
        buffer_size=s.buffer_size,
        learning_starts=s.warm_up,
        batch_size=s.batch_size,
        tau=s.tau,
        gamma=s.gamma,
        train_freq=1,
        gradient_steps=1,
        action_noise=NormalActionNoise(np.zeros(size), np.full(size, s.exploration_sigma)),
        policy_kwargs={'net_arch': list(s.hidden)},
        seed=clock.round,
        device='cpu',
        **more,
    )
    with clock:
        model.learn(s.env_steps)
    assert abs(model._n_updates - (s.env_steps - s.warm_up)) <= 1, model._n_updates
    return model.num_timesteps


def _td3(clock: Clock, s: settings.DeterministicSettings) -> int:
    return _deterministic(
        clock, TD3, s, policy_delay=s.actor_every, target_policy_noise=s.target_sigma, target_noise_clip=s.target_clip
    )


CASES = {
    'dqn': lambda clock: _dqn(clock, settings.DQN),
    'dqn1': lambda clock: _dqn(clock, settings.DQN_1_TO_1),
    'ppo': lambda clock: _ppo(clock, settings.PPO),
    'sac': lambda clock: _sac(clock, settings.SAC),
    'td3': lambda clock: _td3(clock, settings.TD3),
    'ddpg': lambda clock: _deterministic(clock, DDPG, settings.DDPG),
    'pong_dqn': lambda clock: _dqn(clock, settings.PONG_DQN),
    'pong_dqn8': lambda clock: _dqn(clock, settings.PONG_DQN_8),
    'pong_ppo': lambda clock: _ppo(clock, settings.PONG_PPO),
    'cheetah_sac': lambda clock: _sac(clock, settings.CHEETAH_SAC),
    'cheetah_td3': lambda clock: _td3(clock, settings.CHEETAH_TD3),
    'cheetah_ppo': lambda clock: _ppo(clock, settings.CHEETAH_PPO),
}
