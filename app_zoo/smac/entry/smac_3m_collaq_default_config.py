"""The micro-battle of three marines against three, by CollaQ."""

from easydict import EasyDict

smac_3m_collaq_default_config = EasyDict(
    dict(
        env=dict(
            env_type='smac',
            map_name='3m',
            observe_alone=True,
            actor_env_num=8,
            evaluator_env_num=32,
            env_manager_type='vector',
        ),
        policy=dict(
            policy_type='collaQ',
            model=dict(
                hidden_dim_list=[64, 64],
                lstm_type=None,
                agent_ids=True,
                mixing_dim=32,
                attention=True,
                self_feature_range=[29, 30],  # own health
                ally_feature_range=[19, 29],  # two comrades
            ),
            learn=dict(
                train_step=8, batch_size=32, learning_rate=5e-4, algo=dict(target_update_freq=200, td_lambda=0.8)
            ),
            collect=dict(unroll_len=60, traj_len='inf'),
            command=dict(eps=dict(type='linear', start=1.0, end=0.05, decay=50000)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=2000)),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=96, eval_freq=400, stop_win_rate=0.95),
        commander=dict(max_env_step=200_000),
    )
)
main_config = smac_3m_collaq_default_config
