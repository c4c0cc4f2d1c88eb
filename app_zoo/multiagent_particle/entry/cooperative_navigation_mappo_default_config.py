"""Cooperative navigation, three agents, by MAPPO without a memory."""

from easydict import EasyDict

cooperative_navigation_mappo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cooperative_navigation',
            actor_env_num=8,
            evaluator_env_num=20,
            env_manager_type='vector',
        ),
        policy=dict(
            policy_type='mappo',
            learn=dict(
                batch_size=16, epochs=4, learning_rate=1e-3, algo=dict(discount_factor=0.95, entropy_weight=0.001)
            ),
            collect=dict(unroll_len=25, traj_len='inf'),
        ),
        actor=dict(n_episode=16),
        evaluator=dict(n_episode=100, eval_freq=160, stop_val=None),
        commander=dict(max_env_step=200_000),
    )
)
main_config = cooperative_navigation_mappo_default_config
