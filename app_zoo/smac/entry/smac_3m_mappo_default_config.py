"""The micro-battle of three marines against three, by MAPPO."""

from easydict import EasyDict

smac_3m_mappo_default_config = EasyDict(
    dict(
        env=dict(env_type='smac', map_name='3m', actor_env_num=8, evaluator_env_num=32, env_manager_type='vector'),
        policy=dict(
            policy_type='mappo',
            learn=dict(batch_size=32, epochs=5, learning_rate=5e-4),
            collect=dict(unroll_len=60, traj_len='inf'),
        ),
        actor=dict(n_episode=16),
        evaluator=dict(n_episode=96, eval_freq=100, stop_win_rate=0.95),
        commander=dict(max_env_step=200_000),
    )
)
main_config = smac_3m_mappo_default_config
