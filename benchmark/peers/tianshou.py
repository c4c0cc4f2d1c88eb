"""The matched training loops in Tianshou: collector and trainer, without test collector, progress bar and logger."""

import gymnasium as gym
import numpy as np
import torch
from clock import Clock
from peers import settings
from tianshou.algorithm import DDPG, DQN, PPO, SAC, TD3
from tianshou.algorithm.algorithm_base import _gae, _nstep_return
from tianshou.algorithm.modelfree.ddpg import ContinuousDeterministicPolicy
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.modelfree.sac import AutoAlpha, SACPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.exploration import GaussianNoise
from tianshou.trainer import OffPolicyTrainerParams, OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic
from torch import nn


def _compile() -> None:
    """Numba compiles these at their first call, once per process: not part of a loop's speed."""
    one, end = np.ones(2), np.zeros(2, dtype=bool)
    for rewards in (one, one.astype(np.float32)):
        for values in (one, one.astype(np.float32)):
            _gae(values, values, rewards, end, 0.99, 0.95)
            _nstep_return(rewards, end, np.ones((2, 1), values.dtype), np.zeros((1, 2), dtype=np.int64), 0.99, 1)


def _make(env_id: str, envs: int, seed: int) -> DummyVectorEnv:
    torch.manual_seed(seed)
    np.random.seed(seed)
    venv = DummyVectorEnv([lambda: gym.make(env_id) for _ in range(envs)])
    venv.seed(seed)
    return venv


def _train_off_policy(clock: Clock, algorithm: object, venv: DummyVectorEnv, s: object, every: int, **more) -> int:
    """The warm-up counts as in the other libraries: it is a part of ``env_steps`` and inside the clock."""
    _compile()
    collector = Collector(algorithm, venv, VectorReplayBuffer(s.buffer_size, 1), exploration_noise=True)
    params = OffPolicyTrainerParams(
        training_collector=collector,
        max_epochs=1,
        epoch_num_steps=s.env_steps - s.warm_up,
        batch_size=s.batch_size,
        collection_step_num_env_steps=every,
        update_step_num_gradient_steps_per_sample=1 / every,
        verbose=False,
        show_progress=False,
        **more,
    )
    with clock:
        collector.reset()
        warm = collector.collect(n_step=s.warm_up, random=True)
        stats = algorithm.run_training(params)
    assert stats.update_step == (s.env_steps - s.warm_up) // every, stats.update_step
    return warm.n_collected_steps + stats.train_step


def _dqn(clock: Clock, s: settings.DQNSettings) -> int:
    venv = _make(s.env_id, 1, clock.round)
    env = gym.make(s.env_id)
    actions = env.action_space
    policy = DiscreteQLearningPolicy(
        model=Net(state_shape=env.observation_space.shape, action_shape=actions.n, hidden_sizes=list(s.hidden)),
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

    return _train_off_policy(clock, algorithm, venv, s, s.update_every, training_fn=epsilon)


def dqn(clock: Clock) -> int:
    return _dqn(clock, settings.DQN)


def dqn1(clock: Clock) -> int:
    return _dqn(clock, settings.DQN_1_TO_1)


def ppo(clock: Clock) -> int:
    s = settings.PPO
    venv = _make(s.env_id, s.envs, clock.round)
    env = gym.make(s.env_id)

    def net() -> Net:
        return Net(state_shape=env.observation_space.shape, hidden_sizes=list(s.hidden), activation=nn.Tanh)

    actor = DiscreteActor(preprocess_net=net(), action_shape=env.action_space.n, softmax_output=False)
    algorithm = PPO(
        policy=DiscreteActorPolicy(actor=actor, action_space=env.action_space),
        critic=DiscreteCritic(preprocess_net=net()),
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
    collector = Collector(algorithm, venv, VectorReplayBuffer(steps, s.envs))
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


def sac(clock: Clock) -> int:
    s = settings.SAC
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


def td3(clock: Clock) -> int:
    return _deterministic(clock, settings.TD3)


def ddpg(clock: Clock) -> int:
    return _deterministic(clock, settings.DDPG)


CASES = {'dqn': dqn, 'dqn1': dqn1, 'ppo': ppo, 'sac': sac, 'td3': td3, 'ddpg': ddpg}
