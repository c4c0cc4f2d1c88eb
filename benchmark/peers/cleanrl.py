"""
The matched training loops in CleanRL: its scripts are run as they are, from the checkout that ``CLEANRL_DIR`` names.

What is changed from outside: command-line values; the two widths of ``dqn.py``, which are literals in its source; and
the answers of the vector env. The scripts were written for Gymnasium before 1.0, so :class:`OldInfos` resets a finished
env in the same step and gives ``final_observation`` and ``final_info`` as they were. The scripts call ``envs.reset``
right before their loop and ``envs.close`` right after it: that is where the clock starts and stops. Their TensorBoard
writer stays (it writes into the worker's temporary folder), as it is part of the loop. Wrappers that Gymnasium has
renamed have their old names; :class:`OldPool` is EnvPool with the answers of the gym before Gymnasium.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

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


class OldWrapper:
    """What ``gym.Wrapper`` was: what it does not have is asked of the env in it."""

    def __init__(self, env: object) -> None:
        self.env = env

    def __getattr__(self, name: str) -> object:
        return getattr(self.env, name)

    def reset(self) -> object:
        return self.env.reset()

    def step(self, actions: np.ndarray) -> tuple:
        return self.env.step(actions)


class OldPool(OldWrapper):
    """EnvPool's envs by as many threads as torch has, with a clock that runs from ``reset`` to ``close``."""

    def __init__(self, clock: Clock, make: object, task: str, env_type: str, **kwargs: object) -> None:
        threads = int(os.environ.get('OMP_NUM_THREADS', 0))
        super().__init__(make(task, env_type='gymnasium', num_threads=threads or None, **kwargs))
        self.clock, self.env_steps = clock, 0

    def reset(self) -> np.ndarray:
        obs, _ = self.env.reset()
        self.clock.__enter__()
        return obs

    def step(self, actions: np.ndarray) -> tuple:
        self.env_steps += self.num_envs
        obs, reward, terminated, truncated, info = self.env.step(actions)
        return obs, reward, terminated | truncated, info

    def close(self) -> None:
        self.clock.__exit__()
        self.env.close()


@contextlib.contextmanager
def _as_it_was(clock: Clock, pool: bool) -> Iterator[list]:
    """Gymnasium (and EnvPool) as the scripts know them; gives the list of the vector envs that are made inside."""
    made: list = []
    new = gym.wrappers.TransformObservation

    def vector_env(env_fns: list) -> OldInfos:
        made.append(OldInfos(env_fns))
        made[0].clock = clock
        return made[0]

    def make(*args: object, **kwargs: object) -> OldPool:
        made.append(OldPool(clock, envpool_make, *args, **kwargs))
        return made[0]

    with contextlib.ExitStack() as stack:
        for owner, name, old in (
            (gym.vector, 'SyncVectorEnv', vector_env),
            (gym.wrappers, 'GrayScaleObservation', gym.wrappers.GrayscaleObservation),
            (gym.wrappers, 'FrameStack', gym.wrappers.FrameStackObservation),
            (gym.wrappers, 'TransformObservation', lambda env, f: new(env, f, env.observation_space)),
        ):
            stack.enter_context(mock.patch.object(owner, name, old, create=True))
        if pool:
            import envpool

            envpool_make = envpool.make
            stack.enter_context(mock.patch.object(envpool, 'make', make))
            stack.enter_context(
                mock.patch.dict(sys.modules, gym=SimpleNamespace(spaces=gym.spaces, Wrapper=OldWrapper))
            )
        yield made


def _run(clock: Clock, script: str, widths: tuple[int, ...] = (), **arguments: object) -> int:
    if 'atari' in script:
        import ale_py  # noqa: F401, it registers the games
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
    namespace = {'__name__': '__main__', '__file__': str(path)}
    path_with_it = mock.patch.object(sys, 'path', [str(root), *sys.path])
    with mock.patch.object(sys, 'argv', argv), path_with_it, _as_it_was(clock, 'envpool' in script) as made:
        exec(compile(source, str(path), 'exec'), namespace)
    return made[0].env_steps


def _dqn(clock: Clock, s: settings.DQNSettings) -> int:
    images = s.env_id == 'Pong'
    return _run(
        clock,
        'dqn_atari.py' if images else 'dqn.py',
        () if images else s.hidden,
        env_id='PongNoFrameskip-v4' if images else s.env_id,
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


def _ppo(clock: Clock, s: settings.PPOSettings, script: str, env_id: str) -> int:
    return _run(
        clock,
        script,
        env_id=env_id,
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


def _sac(clock: Clock, s: settings.SACSettings) -> int:
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


def _td3(clock: Clock, s: settings.DeterministicSettings) -> int:
    return _deterministic(clock, 'td3_continuous_action.py', s, policy_noise=s.target_sigma, noise_clip=s.target_clip)


CASES = {
    'dqn': lambda clock: _dqn(clock, settings.DQN),
    'dqn1': lambda clock: _dqn(clock, settings.DQN_1_TO_1),
    'ppo': lambda clock: _ppo(clock, settings.PPO, 'ppo.py', 'CartPole-v1'),
    'sac': lambda clock: _sac(clock, settings.SAC),
    'td3': lambda clock: _td3(clock, settings.TD3),
    'ddpg': lambda clock: _deterministic(clock, 'ddpg_continuous_action.py', settings.DDPG),
    'pong_dqn': lambda clock: _dqn(clock, settings.PONG_DQN),
    'pong_ppo': lambda clock: _ppo(clock, settings.PONG_PPO, 'ppo_atari.py', 'PongNoFrameskip-v4'),
    'cheetah_sac': lambda clock: _sac(clock, settings.CHEETAH_SAC),
    'cheetah_td3': lambda clock: _td3(clock, settings.CHEETAH_TD3),
    'cheetah_ppo': lambda clock: _ppo(clock, settings.CHEETAH_PPO, 'ppo_continuous_action.py', 'HalfCheetah-v5'),
}
ENVPOOL_CASES = {
    'pong_ppo': lambda clock: _ppo(clock, settings.PONG_PPO, 'ppo_atari_envpool.py', 'Pong-v5'),
}
