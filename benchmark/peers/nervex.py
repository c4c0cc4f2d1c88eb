"""
The matched training loops in nervex: the workers that ``build_serial`` wires from a config, in the order in which
``serial_pipeline`` calls them, without evaluations. Logs, TensorBoard and hooks are on, as in any run.

``CASES`` run Gymnasium's CartPole like everybody else; ``OWN_ENV_CASES`` run the one of ``app_zoo``, which has the same
equations in plain Python floats. ``BFLOAT16_CASES`` convolve in bfloat16, which no peer has a setting for.
"""

import os

from clock import Clock
from peers import settings

from nervex.run.build import build_serial

GYM_CARTPOLE = {'env_type': 'gym', 'env_id': 'CartPole-v1'}
OWN_CARTPOLE = {
    'env_type': 'cartpole',
    'import_names': ['app_zoo.classic_control.cartpole.envs.cartpole_env'],
    'max_episode_steps': 500,
}


def continuous(env_id: str) -> dict:
    return {'env_type': 'gym', 'env_id': env_id, 'use_act_scale': True}


def atari(env_id: str) -> dict:
    """ALE's vector env, by as many threads as torch has."""
    threads = {'num_threads': int(os.environ.get('OMP_NUM_THREADS', 0))}
    return {'env_type': 'atari', 'env_id': env_id, 'env_manager_type': 'vector', 'vector_kwargs': threads}


def dqn_config(s: settings.DQNSettings, env: dict) -> dict:
    return {
        'exp_name': f'dqn_{s.update_every}',
        'env': {**env, 'actor_env_num': s.envs, 'evaluator_env_num': 1},
        'policy': {
            'policy_type': 'dqn',
            'model': {
                'model_type': 'conv_discrete_net' if env['env_type'] == 'atari' else 'fc_discrete_net',
                'hidden_dim_list': list(s.hidden),
                'dueling': False,
            },
            'learn': {
                'train_step': s.updates,
                'batch_size': s.batch_size,
                'learning_rate': s.learning_rate,
                'init_data_count': s.warm_up,
                'algo': {
                    'target_update_freq': s.target_copy_every // s.update_every,
                    'discount_factor': s.gamma,
                    'nstep': 1,
                    'double_q': False,
                },
            },
            'command': {
                'eps': {
                    'type': 'linear',
                    'start': 1.0,
                    'end': s.epsilon_end,
                    'decay': int(s.env_steps * s.epsilon_fraction),
                },
                'eps_by': 'envstep',
            },
        },
        'replay_buffer': {
            'agent': {'meta_maxlen': s.buffer_size, 'frame_axis': 0 if env['env_type'] == 'atari' else None}
        },
        'actor': {'n_sample': s.round},
        'commander': {'max_env_step': s.env_steps},
    }


def ppo_config(s: settings.PPOSettings, env: dict) -> dict:
    separate = {'share_encoder': False, 'activation': 'tanh'}
    net = {'model_type': 'conv_vac'} if env['env_type'] == 'atari' else separate
    normalize = {'norm_obs': s.normalize, 'norm_reward': s.normalize}
    return {
        'exp_name': 'ppo',
        'env': {**env, 'actor_env_num': s.envs, 'evaluator_env_num': 1, 'manager': normalize},
        'policy': {
            'policy_type': 'ppo',
            'model': {'hidden_dim_list': list(s.hidden), 'head_layer_num': 0, 'ortho_init': True, **net},
            'learn': {
                'epochs': s.epochs,
                'batch_size': s.batch_size,
                'learning_rate': s.learning_rate,
                'grad_clip_norm': s.grad_clip_norm,
                'algo': {
                    'value_weight': s.value_weight,
                    'entropy_weight': s.entropy_weight,
                    'clip_ratio': s.clip,
                    'discount_factor': s.gamma,
                    'gae_lambda': s.gae_lambda,
                },
            },
        },
        'actor': {'n_sample': s.envs * s.rollout},
        'commander': {'max_env_step': s.env_steps},
    }


def continuous_config(policy: str, s: settings.SACSettings, env: dict) -> dict:
    """SAC, TD3 and DDPG."""
    algo = {'discount_factor': s.gamma, 'target_theta': s.tau}
    collect: dict = {'random_steps': s.warm_up}
    if policy != 'sac':
        algo.update(actor_update_freq=s.actor_every, target_noise_sigma=s.target_sigma, target_noise_clip=s.target_clip)
        collect['noise_sigma'] = s.exploration_sigma
    return {
        'exp_name': policy,
        'env': {**env, 'actor_env_num': 1, 'evaluator_env_num': 1},
        'policy': {
            'policy_type': policy,
            'model': {'hidden_dim_list': list(s.hidden)},
            'learn': {
                'train_step': 1,
                'batch_size': s.batch_size,
                'learning_rate': s.learning_rate,
                'init_data_count': s.warm_up,
                'algo': algo,
            },
            'collect': collect,
        },
        'replay_buffer': {'agent': {'meta_maxlen': s.buffer_size}},
        'actor': {'n_sample': 1},
        'commander': {'max_env_step': s.env_steps},
    }


def train(clock: Clock, config: dict, updates: int, slack: int = 1) -> int:
    """Run the loop inside the clock; AssertionError unless it made so many updates, give or take ``slack``."""
    with build_serial(config, seed=clock.round) as run:
        run.learner.call_hook('before_run')
        with clock:
            while not run.commander.out_of_budget():
                run.commander.step()
                run.collect()
                for batch in run.batches():
                    run.train(batch)
        assert abs(run.learner.train_iter - updates) <= slack, (run.learner.train_iter, updates)
        return run.actor.total_step


def _dqn(clock: Clock, s: settings.DQNSettings, env: dict, **net: object) -> int:
    config = dqn_config(s, env)
    config['policy']['model'].update(net)
    return train(clock, config, updates=(s.env_steps - s.warm_up) // s.update_every, slack=s.updates)


def _ppo(clock: Clock, s: settings.PPOSettings, env: dict, **net: object) -> int:
    config = ppo_config(s, env)
    config['policy']['model'].update(net)
    return train(clock, config, updates=s.epochs * s.env_steps // s.batch_size)


def _continuous(clock: Clock, policy: str, s: settings.SACSettings) -> int:
    config = continuous_config(policy, s, continuous(s.env_id))
    return train(clock, config, updates=s.env_steps - s.warm_up)


def _cases(env: dict) -> dict:
    return {
        'dqn': lambda clock: _dqn(clock, settings.DQN, env),
        'dqn1': lambda clock: _dqn(clock, settings.DQN_1_TO_1, env),
        'ppo': lambda clock: _ppo(clock, settings.PPO, env),
        'sac': lambda clock: _continuous(clock, 'sac', settings.SAC),
        'td3': lambda clock: _continuous(clock, 'td3', settings.TD3),
        'ddpg': lambda clock: _continuous(clock, 'ddpg', settings.DDPG),
    }


def _pong(**net: object) -> dict:
    return {
        'pong_dqn': lambda clock: _dqn(clock, settings.PONG_DQN, atari('Pong'), **net),
        'pong_dqn8': lambda clock: _dqn(clock, settings.PONG_DQN_8, atari('Pong'), **net),
        'pong_ppo': lambda clock: _ppo(clock, settings.PONG_PPO, atari('Pong'), **net),
    }


CASES = {
    **_cases(GYM_CARTPOLE),
    **_pong(),
    'cheetah_sac': lambda clock: _continuous(clock, 'sac', settings.CHEETAH_SAC),
    'cheetah_td3': lambda clock: _continuous(clock, 'td3', settings.CHEETAH_TD3),
    'cheetah_ppo': lambda clock: _ppo(clock, settings.CHEETAH_PPO, continuous('HalfCheetah-v5')),
}
OWN_ENV_CASES = {name: case for name, case in _cases(OWN_CARTPOLE).items() if name in ('dqn', 'dqn1', 'ppo')}
BFLOAT16_CASES = _pong(bfloat16=True)
