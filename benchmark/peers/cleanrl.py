"""
The matched training loops in CleanRL: its scripts are run as they are, from the checkout that ``CLEANRL_DIR`` names.

What is changed from outside: command-line values; the two widths of ``dqn.py``, which are literals in its source; and
the answers of the vector env. The scripts were written for Gymnasium before 1.0, so :class:`OldInfos` resets a finished
env in the same step and gives ``final_observation`` and ``final_info`` as they were. The scripts call ``envs.reset``
right before their loop and ``envs.close`` right after it: that is where the clock starts and stops. Their TensorBoard
writer stays (it writes into the worker's temporary folder), as it is part of the loop.
"""

import os
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
from clock import Clock
from peers import settings

MATCHED_WIDTHS = {
    '.prod(), 120)': '.prod(), {0})',
    'nn.Linear(120, 84)': 'nn.Linear({0}, {1})',
    'nn.Linear(84, ': 'nn.Linear({1}, ',
}


class OldInfos(gym.vector.SyncVectorEnv):
    """``SyncVectorEnv`` as CleanRL knows it, with a clock that runs from ``reset`` to ``close``."""

    clock: Clock

    def __init__(self, env_fns: list) -> None:
        super().__init__(env_fns, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
        self.env_steps = 0

    def reset(self, **kwargs) -> tuple:
        result = super().reset(**kwargs)
        self.clock.__enter__()
        return result

    def step(self, actions: np.ndarray) -> tuple:
        self.env_steps += self.num_envs
        obs, reward, terminated, truncated, infos = super().step(actions)
        if 'final_obs' in infos:
            ended = infos['_final_obs']
            episode = infos['final_info']['episode']
            old = [
                {'episode': {'r': episode['r'][i], 'l': episode['l'][i]}} if ended[i] else None
                for i in range(self.num_envs)
            ]
            infos = {'final_observation': infos['final_obs'], 'final_info': old}
        return obs, reward, terminated, truncated, infos

    def close_extras(self, **kwargs) -> None:
        self.clock.__exit__()
        super().close_extras(**kwargs)


def _run(clock: Clock, script: str, widths: tuple[int, ...] = (), **arguments: object) -> int:
    root = Path(os.environ['CLEANRL_DIR'])
    path = root / 'cleanrl' / script
    source = path.read_text(encoding='utf-8')
    for old, new in MATCHED_WIDTHS.items() if widths else ():
        if source.count(old) != 1:
            raise ValueError(f'{path}: {old!r} must occur once, not {source.count(old)} times; take another checkout')
        source = source.replace(old, new.format(*widths))
    argv = [script, '--seed', str(clock.round + 1), '--no-cuda']
    for key, value in arguments.items():
        flag = '--' + key.replace('_', '-')
        argv += [flag, str(value)] if not isinstance(value, bool) else [flag if value else f'--no-{flag[2:]}']
    made: list[OldInfos] = []

    def vector_env(env_fns: list) -> OldInfos:
        envs = OldInfos(env_fns)
        envs.clock = clock
        made.append(envs)
        return envs

    namespace = {'__name__': '__main__', '__file__': str(path)}
    sys.path.insert(0, str(root))
    before, sys.argv, original = sys.argv, argv, gym.vector.SyncVectorEnv
    gym.vector.SyncVectorEnv = vector_env
    try:
        exec(compile(source, str(path), 'exec'), namespace)
    finally:
        gym.vector.SyncVectorEnv, sys.argv = original, before
        sys.path.remove(str(root))
    return made[0].env_steps


def _dqn(clock: Clock, s: settings.DQNSettings) -> int:
    return _run(
        clock,
        'dqn.py',
        s.hidden,
        env_id=s.env_id,
        total_timesteps=s.env_steps,
        learning_rate=s.learning_rate,
        buffer_size=s.buffer_size,
        gamma=s.gamma,
        target_network_frequency=s.target_copy_every,
        batch_size=s.batch_size,
        end_e=s.epsilon_end,
        exploration_fraction=s.epsilon_fraction,
        learning_starts=s.warm_up,
        train_frequency=s.update_every,
    )


def dqn(clock: Clock) -> int:
    return _dqn(clock, settings.DQN)


def dqn1(clock: Clock) -> int:
    return _dqn(clock, settings.DQN_1_TO_1)


def ppo(clock: Clock) -> int:
    s = settings.PPO
    return _run(
        clock,
        'ppo.py',
        env_id=s.env_id,
        total_timesteps=s.env_steps,
        learning_rate=s.learning_rate,
        num_envs=s.envs,
        num_steps=s.rollout,
        anneal_lr=False,
        gamma=s.gamma,
        gae_lambda=s.gae_lambda,
        update_epochs=s.epochs,
        num_minibatches=s.envs * s.rollout // s.batch_size,
        clip_coef=s.clip,
        ent_coef=s.entropy_weight,
        vf_coef=s.value_weight,
        max_grad_norm=s.grad_clip_norm,
    )


def sac(clock: Clock) -> int:
    s = settings.SAC
    return _run(
        clock,
        'sac_continuous_action.py',
        env_id=s.env_id,
        total_timesteps=s.env_steps,
        buffer_size=s.buffer_size,
        gamma=s.gamma,
        tau=s.tau,
        batch_size=s.batch_size,
        learning_starts=s.warm_up,
        policy_lr=s.learning_rate,
        q_lr=s.learning_rate,
    )


def _deterministic(clock: Clock, script: str, s: settings.DeterministicSettings, **more) -> int:
    return _run(
        clock,
        script,
        env_id=s.env_id,
        total_timesteps=s.env_steps,
        buffer_size=s.buffer_size,
        gamma=s.gamma,
        tau=s.tau,
        batch_size=s.batch_size,
        learning_starts=s.warm_up,
        learning_rate=s.learning_rate,
        exploration_noise=s.exploration_sigma,
        policy_frequency=s.actor_every,
        **more,
    )


def td3(clock: Clock) -> int:
    s = settings.TD3
    return _deterministic(clock, 'td3_continuous_action.py', s, policy_noise=s.target_sigma, noise_clip=s.target_clip)


def ddpg(clock: Clock) -> int:
    return _deterministic(clock, 'ddpg_continuous_action.py', settings.DDPG)


CASES = {'dqn': dqn, 'dqn1': dqn1, 'ppo': ppo, 'sac': sac, 'td3': td3, 'ddpg': ddpg}
