"""The matched training loops in Tianshou: collector and trainer, without test collector, progress bar and logger."""

import os
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from clock import Clock
from peers import settings
from tianshou.algorithm import DDPG, DQN, PPO, SAC, TD3
from tianshou.algorithm.algorithm_base import _gae, _nstep_return
from tianshou.algorithm.modelfree.ddpg import ContinuousDeterministicPolicy
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy, ProbabilisticActorPolicy
from tianshou.algorithm.modelfree.sac import AutoAlpha, SACPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, VectorEnvNormObs
from tianshou.env.atari.atari_network import DQNet, ScaledObsInputActionReprNet, layer_init
from tianshou.exploration import GaussianNoise
from tianshou.trainer import OffPolicyTrainerParams, OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic
from torch import nn
from torch.distributions import Independent, Normal


def _compile() -> None:
    """Numba compiles these at their first call, once per process: not part of a loop's speed."""
    one, end = np.ones(2), np.zeros(2, dtype=bool)
    for rewards in (one, one.astype(np.float32)):
        for values in (one, one.astype(np.float32)):
            _gae(values, values, rewards, end, 0.99, 0.95)
            _nstep_return(rewards, end, np.ones((2, 1), values.dtype), np.zeros((1, 2), dtype=np.int64), 0.99, 1)


def _pool(envs: int, seed: int) -> Any:
    """EnvPool's Pong, as Tianshou's ``make_atari_env`` takes it, by as many threads as torch has."""
    import envpool

    threads = {'num_threads': int(os.environ.get('OMP_NUM_THREADS', 0)) or None}
    ends = {'episodic_life': True, 'reward_clip': True, 'stack_num': 4}
    return envpool.make('Pong-v5', env_type='gymnasium', num_envs=envs, seed=seed, **ends, **threads)


def _make(env_id: str, envs: int, seed: int) -> Any:
    torch.manual_seed(seed)
    np.random.seed(seed)
    if env_id == 'Pong':
        return _pool(envs, seed)
    venv = DummyVectorEnv([lambda: gym.make(env_id) for _ in range(envs)])
    venv.seed(seed)
    return venv


def _one(spaces: Any) -> gym.Space:
    """The space of one env; EnvPool gives no list."""
    return spaces[0] if isinstance(spaces, list) else spaces


FRAMES_ONCE = {'ignore_obs_next': True, 'save_only_last_obs': True, 'stack_num': 4}


def _convolutions(actions: int, **more) -> ScaledObsInputActionReprNet:
    return ScaledObsInputActionReprNet(DQNet(4, 84, 84, action_shape=actions, **more))


def _train_off_policy(
    clock: Clock, algorithm: object, venv: DummyVectorEnv, s: object, every: int, updates: int = 1, **more
) -> int:
    """The warm-up counts as in the other libraries: it is a part of ``env_steps`` and inside the clock."""
    _compile()
    buffer = VectorReplayBuffer(s.buffer_size, len(venv), **(FRAMES_ONCE if s.env_id == 'Pong' else {}))
    collector = Collector(algorithm, venv, buffer, exploration_noise=True)
    params = OffPolicyTrainerParams(
        training_collector=collector,
        max_epochs=1,
        epoch_num_steps=s.env_steps - s.warm_up,
        batch_size=s.batch_size,
        collection_step_num_env_steps=every,
        update_step_num_gradient_steps_per_sample=updates / every,
        verbose=False,
        show_progress=False,
        **more,
    )
    with clock:
        collector.reset()
        warm = collector.collect(n_step=s.warm_up, random=True)
        stats = algorithm.run_training(params)
    assert stats.update_step == (s.env_steps - s.warm_up) // every, stats.update_step  # turns of updates
    return warm.n_collected_steps + stats.train_step


def _dqn(clock: Clock, s: settings.DQNSettings) -> int:
    venv = _make(s.env_id, s.envs, clock.round)
    actions, shape = _one(venv.action_space), _one(venv.observation_space).shape
    policy = DiscreteQLearningPolicy(
        model=_convolutions(actions.n)
        if s.env_id == 'Pong'
        else Net(state_shape=shape, action_shape=actions.n, hidden_sizes=list(s.hidden)),
        action_space=actions,
        eps_training=1.0,
    )
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=s.learning_rate),
        gamma=s.gamma,
        is_double=False,
        target_update_freq=s.target_copy_every // s.update_every,
    )

    def epsilon(epoch: int, env_step: int) -> None:
        done = (env_step + s.warm_up) / (s.env_steps * s.epsilon_fraction)
        policy.set_eps_training(max(s.epsilon_end, 1.0 + done * (s.epsilon_end - 1.0)))

    return _train_off_policy(clock, algorithm, venv, s, s.round, s.updates, training_fn=epsilon)


def _ppo(clock: Clock, s: settings.PPOSettings) -> int:
    venv = _make(s.env_id, s.envs, clock.round)
    images, space = s.env_id == 'Pong', _one(venv.action_space)
    wide = {'features_only': True, 'output_dim_added_layer': s.hidden[0], 'layer_init': layer_init}
    shared = _convolutions(space.n, **wide) if images else None

    def net() -> Any:
        shape = _one(venv.observation_space).shape
        return shared or Net(state_shape=shape, hidden_sizes=list(s.hidden), activation=nn.Tanh)

    if s.normalize:
        venv = VectorEnvNormObs(venv)
    if hasattr(space, 'n'):
        actor = DiscreteActor(preprocess_net=net(), action_shape=space.n, softmax_output=False)
        policy, critic = DiscreteActorPolicy(actor=actor, action_space=space), DiscreteCritic(preprocess_net=net())
    else:
        actor = ContinuousActorProbabilistic(preprocess_net=net(), action_shape=space.shape, unbounded=True)
        policy = ProbabilisticActorPolicy(
            actor=actor, dist_fn=lambda mu_sigma: Independent(Normal(*mu_sigma), 1), action_space=space
        )
        critic = ContinuousCritic(preprocess_net=net())
    algorithm = PPO(
        policy=policy,
        critic=critic,
        return_scaling=s.normalize,
        optim=AdamOptimizerFactory(lr=s.learning_rate),
        eps_clip=s.clip,
        vf_coef=s.value_weight,
        ent_coef=s.entropy_weight,
        max_grad_norm=s.grad_clip_norm,
        gae_lambda=s.gae_lambda,
        gamma=s.gamma,
    )
    _compile()
    steps = s.envs * s.rollout
    buffer = VectorReplayBuffer(steps, s.envs, **(FRAMES_ONCE if images else {}))
    collector = Collector(algorithm, venv, buffer)
    params = OnPolicyTrainerParams(
        training_collector=collector,
        max_epochs=1,
        epoch_num_steps=s.env_steps,
        collection_step_num_env_steps=steps,
        update_step_num_repetitions=s.epochs,
        batch_size=s.batch_size,
        verbose=False,
        show_progress=False,
    )
    with clock:
        stats = algorithm.run_training(params)
    return stats.train_step


def _sac(clock: Clock, s: settings.SACSettings) -> int:
    venv = _make(s.env_id, 1, clock.round)
    env = gym.make(s.env_id)
    obs, act = env.observation_space.shape, env.action_space.shape
    adam = AdamOptimizerFactory(lr=s.learning_rate)
    actor = ContinuousActorProbabilistic(
        preprocess_net=Net(state_shape=obs, hidden_sizes=list(s.hidden)),
        action_shape=act,
        unbounded=True,
        conditioned_sigma=True,
    )

    def critic() -> ContinuousCritic:
        net = Net(state_shape=obs, action_shape=act, hidden_sizes=list(s.hidden), concat=True)
        return ContinuousCritic(preprocess_net=net)

    algorithm = SAC(
        policy=SACPolicy(actor=actor, action_space=env.action_space),
        policy_optim=adam,
        critic=critic(),
        critic_optim=adam,
        critic2=critic(),
        critic2_optim=adam,
        tau=s.tau,
        gamma=s.gamma,
        alpha=AutoAlpha(-float(np.prod(act)), 0.0, adam),
    )
    return _train_off_policy(clock, algorithm, venv, s, 1)


def _deterministic(clock: Clock, s: settings.DeterministicSettings) -> int:
    venv = _make(s.env_id, 1, clock.round)
    env = gym.make(s.env_id)
    obs, act = env.observation_space.shape, env.action_space.shape
    adam = AdamOptimizerFactory(lr=s.learning_rate)
    actor = ContinuousActorDeterministic(
        preprocess_net=Net(state_shape=obs, hidden_sizes=list(s.hidden)), action_shape=act
    )

    def critic() -> ContinuousCritic:
        net = Net(state_shape=obs, action_shape=act, hidden_sizes=list(s.hidden), concat=True)
        return ContinuousCritic(preprocess_net=net)

    noise = GaussianNoise(sigma=s.exploration_sigma)
    policy = ContinuousDeterministicPolicy(actor=actor, exploration_noise=noise, action_space=env.action_space)
    common = dict(policy=policy, policy_optim=adam, critic=critic(), critic_optim=adam, tau=s.tau, gamma=s.gamma)
    if not s.twins:
        return _train_off_policy(clock, DDPG(**common), venv, s, 1)
    algorithm = TD3(
        critic2=critic(),
        critic2_optim=adam,
        policy_noise=s.target_sigma,
        update_actor_freq=s.actor_every,
        noise_clip=s.target_clip,
        **common,
    )
    return _train_off_policy(clock, algorithm, venv, s, 1)


CASES = {
    'dqn': lambda clock: _dqn(clock, settings.DQN),
    'dqn1': lambda clock: _dqn(clock, settings.DQN_1_TO_1),
    'ppo': lambda clock: _ppo(clock, settings.PPO),
    'sac': lambda clock: _sac(clock, settings.SAC),
    'td3': lambda clock: _deterministic(clock, settings.TD3),
    'ddpg': lambda clock: _deterministic(clock, settings.DDPG),
    'pong_dqn': lambda clock: _dqn(clock, settings.PONG_DQN),
    'pong_dqn8': lambda clock: _dqn(clock, settings.PONG_DQN_8),
    'pong_ppo': lambda clock: _ppo(clock, settings.PONG_PPO),
    'cheetah_sac': lambda clock: _sac(clock, settings.CHEETAH_SAC),
    'cheetah_td3': lambda clock: _deterministic(clock, settings.CHEETAH_TD3),
    'cheetah_ppo': lambda clock: _ppo(clock, settings.CHEETAH_PPO),
}
