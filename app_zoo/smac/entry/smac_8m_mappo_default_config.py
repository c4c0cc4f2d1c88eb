"""The micro-battle of eight marines against eight, by MAPPO."""

from easydict import EasyDict

smac_8m_mappo_default_config = EasyDict(
    dict(
        env=dict(env_type='smac', map_name='8m', actor_env_num=8, evaluator_env_num=32, env_manager_type='vector'),
        policy=dict(
            policy_type='mappo',
            learn=dict(batch_size=16, epochs=5, learning_rate=5e-4),
            collect=dict(unroll_len=20, traj_len='inf'),
        ),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=96, eval_freq=300, stop_win_rate=0.95),
        commander=dict(max_env_step=200_000),
    )
)
main_config = smac_8m_mappo_default_config
