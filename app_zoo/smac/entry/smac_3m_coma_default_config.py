"""The micro-battle of three marines against three, by COMA."""

from easydict import EasyDict

smac_3m_coma_default_config = EasyDict(
    dict(
        env=dict(env_type='smac', map_name='3m', actor_env_num=8, evaluator_env_num=32, env_manager_type='vector'),
        policy=dict(
            policy_type='coma',
            model=dict(hidden_dim_list=[64, 64], lstm_type=None, agent_ids=True),
            learn=dict(batch_size=8, epochs=1, learning_rate=5e-4),
            collect=dict(unroll_len=60, traj_len='inf'),
            command=dict(eps=dict(type='linear', start=0.5, end=0.02, decay=50000)),
        ),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=96, eval_freq=200, stop_win_rate=0.95),
        commander=dict(max_env_step=200_000),
    )
)
main_config = smac_3m_coma_default_config
