"""
The training loops of teams in nervex: cooperative navigation, as ``peers/nervex.py`` runs those of single agents.

``CASES`` run as many envs at once as the peers do (QMIX one, MAPPO ten), ``VECTOR_CASES`` eight and ten as one array
env, with as many updates an env step. The envs are ``app_zoo``'s own, which are equal to mpe2's step by step;
``MPE2_CASES`` run mpe2 itself.
"""

from clock import Clock
from peers import settings
from peers.nervex import train

OWN_NAVIGATION = {
    'env_type': 'cooperative_navigation',
    'import_names': ['app_zoo.multiagent_particle.envs.cooperative_navigation_env'],
}
MPE2_NAVIGATION = {'env_type': 'pettingzoo', 'env_id': 'mpe2.simple_spread_v3'}


def qmix_config(s: settings.QMIXSettings, env: dict, envs: int) -> dict:
    return {
        'exp_name': f'qmix_{envs}',
        'env': {**env, 'actor_env_num': envs, 'evaluator_env_num': 1},
        'policy': {
            'policy_type': 'qmix',
            'model': {
                'hidden_dim_list': [s.hidden, s.hidden],
                'lstm_type': None,
                'agent_ids': True,
                'mixing_dim': s.mixing,
                'hypernet_dim': s.hidden,
            },
            'learn': {
                'train_step': envs // s.update_every,
                'batch_size': s.batch_size,
                'learning_rate': s.learning_rate,
                'grad_clip_norm': s.grad_clip_norm,
                'algo': {
                    'target_update_freq': s.target_copy_every // s.update_every,
                    'discount_factor': s.gamma,
                    'double_q': True,
                },
            },
            'collect': {'unroll_len': s.episode, 'traj_len': 'inf'},
            'command': {
                'eps': {'type': 'linear', 'start': 1.0, 'end': s.epsilon_end, 'decay': s.epsilon_steps},
                'eps_by': 'envstep',
            },
        },
        'replay_buffer': {'agent': {'meta_maxlen': s.buffer_size}},
        'actor': {'n_episode': envs},
        'commander': {'max_env_step': s.env_steps},
    }


def mappo_config(s: settings.MAPPOSettings, env: dict) -> dict:
    return {
        'exp_name': 'mappo',
        'env': {**env, 'actor_env_num': s.envs, 'evaluator_env_num': 1},
        'policy': {
            'policy_type': 'mappo',
            'model': {'hidden_dim_list': [s.hidden], 'lstm_type': 'gru'},
            'learn': {
                'epochs': s.epochs,
                'batch_size': s.envs,
                'learning_rate': s.learning_rate,
                'grad_clip_norm': s.grad_clip_norm,
                'algo': {'entropy_weight': s.entropy_weight, 'clip_ratio': s.clip, 'discount_factor': s.gamma},
            },
            'collect': {'unroll_len': s.episode, 'traj_len': s.episode},
        },
        'actor': {'n_sample': s.envs},
        'commander': {'max_env_step': s.env_steps},
    }


def _qmix(clock: Clock, env: dict, envs: int) -> int:
    s = settings.QMIX
    updates = s.env_steps // s.episode // s.update_every
    return train(clock, qmix_config(s, env, envs), updates, slack=s.batch_size)  # the buffer is filled first


def _mappo(clock: Clock, env: dict) -> int:
    s = settings.MAPPO
    return train(clock, mappo_config(s, env), updates=s.epochs * s.env_steps // (s.envs * s.episode))


def _cases(env: dict, envs: int) -> dict:
    return {'qmix': lambda clock: _qmix(clock, env, envs), 'mappo': lambda clock: _mappo(clock, env)}


CASES = _cases(OWN_NAVIGATION, 1)
VECTOR_CASES = _cases({**OWN_NAVIGATION, 'env_manager_type': 'vector'}, 8)
MPE2_CASES = _cases(MPE2_NAVIGATION, 1)
