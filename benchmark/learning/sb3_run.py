"""
The same training by Stable-Baselines3: its arguments are read off the resolved nervex config, so that settings are
equal by construction; what has no equal here is refused. Evaluations are as many env steps apart, of as many episodes.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3 import DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn
from torch.optim import Adam

from nervex.config import compile_config

EVALUATION_SEED = 100_000


def train(config: str, seed: int, overrides: list[str]) -> dict[str, Any]:
    """One run; answers what :mod:`one` stores."""
    cfg = compile_config(config, overrides=overrides)
    cfg.env_id = cfg.env.env_id
    make = {'dqn': _dqn, 'qrdqn': _qrdqn, 'ppo': _ppo, 'sac': _sac, 'td3': _td3, 'ddpg': _td3}[cfg.policy.policy_type]
    model = make(cfg, seed)
    curve = Curve(cfg, seed, _steps_between_evaluations(cfg))
    model.learn(cfg.commander.max_env_step, callback=curve)
    return {
        'solved': False,
        'final_return': curve.history[-1][1],
        'env_steps': model.num_timesteps,
        'updates': _updates(cfg, model),
        'history': curve.history,
    }


def _updates(cfg: Any, model: Any) -> int:
    """SB3's PPO counts passes over its rollout."""
    if cfg.policy.policy_type != 'ppo':
        return model._n_updates
    return model._n_updates * cfg.actor.n_sample // cfg.policy.learn.batch_size


def _updates_per_round(cfg: Any) -> int:
    learn = cfg.policy.learn
    if cfg.policy.policy_type == 'ppo':
        return learn.epochs * cfg.actor.n_sample // learn.batch_size
    return learn.train_step


def _steps_between_evaluations(cfg: Any) -> int:
    return cfg.evaluator.eval_freq * cfg.actor.n_sample // _updates_per_round(cfg)


def _envs(cfg: Any, seed: int) -> Any:
    envs = make_vec_env(cfg.env_id, n_envs=cfg.env.actor_env_num, seed=seed)
    manager = cfg.env.manager
    if manager.norm_obs or manager.norm_reward:
        # the discount of the reward's normalisation: left at the same value as in nervex
        envs = VecNormalize(
            envs,
            norm_obs=manager.norm_obs,
            norm_reward=manager.norm_reward,
            gamma=manager.norm_discount,
            clip_obs=manager.norm_clip,
            clip_reward=manager.norm_clip,
        )
    return envs


def _off_policy(cfg: Any, seed: int) -> dict[str, Any]:
    learn = cfg.policy.learn
    return dict(
        policy='MlpPolicy',
        env=_envs(cfg, seed),
        learning_rate=learn.learning_rate,
        buffer_size=cfg.replay_buffer.agent.meta_maxlen,
        learning_starts=learn.init_data_count,
        batch_size=learn.batch_size,
        gamma=learn.algo.discount_factor,
        train_freq=cfg.actor.n_sample // cfg.env.actor_env_num,  # in steps of all envs together
        gradient_steps=learn.train_step,
        seed=seed,
        device='cpu',
    )


def _actor_critic(cfg: Any, seed: int) -> dict[str, Any]:
    net = {'net_arch': list(cfg.policy.model.hidden_dim_list)}
    return dict(tau=cfg.policy.learn.algo.target_theta, policy_kwargs=net, **_off_policy(cfg, seed))


def _sac(cfg: Any, seed: int) -> Any:
    return SAC(ent_coef='auto', **_actor_critic(cfg, seed))


def _td3(cfg: Any, seed: int) -> Any:
    algo, settings = cfg.policy.learn.algo, _actor_critic(cfg, seed)
    size = settings['env'].action_space.shape
    noise = NormalActionNoise(np.zeros(size), np.full(size, cfg.policy.collect.noise_sigma))
    if cfg.policy.policy_type == 'ddpg':
        return DDPG(action_noise=noise, **settings)
    smooth = dict(target_policy_noise=algo.target_noise_sigma, target_noise_clip=algo.target_noise_clip)
    return TD3(action_noise=noise, policy_delay=algo.actor_update_freq, **smooth, **settings)


def _adam(learn: Any) -> dict[str, Any]:
    """Both libraries' Adam with the same eps: SB3's PPO and QR-DQN have others than 1e-8."""
    if learn.optimizer != 'adam':
        raise ValueError(f'optimizer {learn.optimizer}: not written for Stable-Baselines3')
    return {'optimizer_class': Adam, 'optimizer_kwargs': {'eps': learn.optimizer_eps or 1e-8}}


def _value_based(cfg: Any, seed: int) -> dict[str, Any]:
    learn, eps, n_sample = cfg.policy.learn, cfg.policy.command.eps, cfg.actor.n_sample
    algo = learn.algo
    if algo.double_q or algo.nstep != 1 or eps.type != 'linear' or cfg.policy.command.eps_by != 'envstep':
        raise ValueError('SB3 has no double Q-learning, and epsilon falls linearly over env steps')
    return dict(
        **_off_policy(cfg, seed),
        target_update_interval=learn.algo.target_update_freq * n_sample // learn.train_step,
        exploration_fraction=eps.decay / cfg.commander.max_env_step,
        exploration_initial_eps=eps.start,
        exploration_final_eps=eps.end,
        max_grad_norm=learn.grad_clip_norm,
    )


def _dqn(cfg: Any, seed: int) -> Any:
    learn, model = cfg.policy.learn, cfg.policy.model
    if model.dueling or not learn.algo.huber:
        raise ValueError("SB3's DQN has no dueling head, and its loss is Huber's")
    net = {'net_arch': list(model.hidden_dim_list), **_adam(learn)}
    return DQN(policy_kwargs=net, **_value_based(cfg, seed))


def _qrdqn(cfg: Any, seed: int) -> Any:
    from sb3_contrib import QRDQN

    learn, model = cfg.policy.learn, cfg.policy.model
    net = {'net_arch': list(model.hidden_dim_list), 'n_quantiles': model.num_quantiles, **_adam(learn)}
    return QRDQN(policy_kwargs=net, **_value_based(cfg, seed))


def _step_size(learn: Any) -> Any:
    """SB3 asks with what is left of the run, from 1 to 0."""
    if learn.learning_rate_schedule == 'constant':
        return learn.learning_rate
    if learn.learning_rate_schedule != 'linear':
        raise ValueError(f'learning_rate_schedule {learn.learning_rate_schedule}: not written for Stable-Baselines3')
    end = learn.learning_rate_end
    return lambda left: learn.learning_rate * (end + (1 - end) * left)


def _ppo(cfg: Any, seed: int) -> Any:
    learn, algo, model = cfg.policy.learn, cfg.policy.learn.algo, cfg.policy.model
    if model.share_encoder or model.head_layer_num or model.activation != 'tanh' or not model.ortho_init:
        raise ValueError('written for two networks with tanh, orthogonal at the start, without hidden layers in heads')
    if algo.use_value_clip:
        raise ValueError('the value clip: nerveX and the paper take the larger error, SB3 the clipped one')
    widths = list(model.hidden_dim_list)
    return PPO(
        'MlpPolicy',
        _envs(cfg, seed),
        learning_rate=_step_size(learn),
        n_steps=cfg.actor.n_sample // cfg.env.actor_env_num,
        batch_size=learn.batch_size,
        n_epochs=learn.epochs,
        gamma=algo.discount_factor,
        gae_lambda=algo.gae_lambda,
        clip_range=algo.clip_ratio,
        ent_coef=algo.entropy_weight,
        vf_coef=algo.value_weight / 2,  # of the squared error; in nerveX of half of it
        max_grad_norm=learn.grad_clip_norm,
        policy_kwargs={'net_arch': {'pi': widths, 'vf': widths}, 'activation_fn': nn.Tanh, **_adam(learn)},
        seed=seed,
        device='cpu',
    )


class Curve(BaseCallback):
    """Greedy evaluations between two rounds, as nervex does them: ``history`` holds [env steps, mean return]."""

    def __init__(self, cfg: Any, seed: int, every: int) -> None:
        super().__init__()
        self._envs = [gym.make(cfg.env_id) for _ in range(cfg.evaluator.n_episode)]
        self._seed, self._every, self._next = EVALUATION_SEED + seed, every, 0
        self.history: list[list[float]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self._next:
            self._evaluate()
            self._next += self._every

    def _on_training_end(self) -> None:
        self._evaluate()

    def _evaluate(self) -> None:
        normalise = self.model.get_vec_normalize_env()
        obs = [env.reset(seed=self._seed + i)[0] for i, env in enumerate(self._envs)]
        returns, running = np.zeros(len(obs)), list(range(len(obs)))
        while running:
            block = np.stack([obs[i] for i in running])
            if normalise is not None:
                block = normalise.normalize_obs(block)
            actions, _ = self.model.predict(block, deterministic=True)
            going_on = []
            for i, action in zip(running, actions):
                obs[i], reward, terminated, truncated, _ = self._envs[i].step(action)
                returns[i] += reward
                if not (terminated or truncated):
                    going_on.append(i)
            running = going_on
        self.history.append([int(self.num_timesteps), float(returns.mean())])
