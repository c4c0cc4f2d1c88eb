"""The micro-battle of two stalkers and three zealots against the same, by MAPPO; with ``env.map_name`` other maps."""

from easydict import EasyDict

smac_2s3z_mappo_default_config = EasyDict(
    dict(
        env=dict(env_type='smac', map_name='2s3z', actor_env_num=8, evaluator_env_num=32, env_manager_type='vector'),
        policy=dict(
            policy_type='mappo',
            learn=dict(batch_size=16, epochs=10, learning_rate=1e-3),
            collect=dict(unroll_len=20, traj_len='inf'),
        ),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=96, eval_freq=300, stop_win_rate=0.95),
        commander=dict(max_env_step=200_000),
    )
)
main_config = smac_2s3z_mappo_default_config
