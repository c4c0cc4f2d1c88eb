"""The micro-battle of eight marines against eight, by QMIX."""

from easydict import EasyDict

smac_8m_qmix_default_config = EasyDict(
    dict(
        env=dict(env_type='smac', map_name='8m', actor_env_num=8, evaluator_env_num=32, env_manager_type='vector'),
        policy=dict(
            policy_type='qmix',
            model=dict(hidden_dim_list=[64, 64], lstm_type=None, agent_ids=True, mixing_dim=32),
            learn=dict(
                train_step=8, batch_size=32, learning_rate=5e-4, algo=dict(target_update_freq=200, td_lambda=0.6)
            ),
            collect=dict(unroll_len=20, traj_len='inf'),
            command=dict(eps=dict(type='linear', start=1.0, end=0.05, decay=50000)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=5000)),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=96, eval_freq=400, stop_win_rate=0.95),
        commander=dict(max_env_step=200_000),
    )
)
main_config = smac_8m_qmix_default_config
