"""Cooperative navigation, three agents, by MATD3 without a memory."""

from easydict import EasyDict

cooperative_navigation_matd3_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cooperative_navigation',
            actor_env_num=8,
            evaluator_env_num=20,
            env_manager_type='base',
        ),
        policy=dict(
            policy_type='matd3',
            learn=dict(train_step=8, batch_size=256, learning_rate=1e-3),
            collect=dict(traj_len='inf'),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=100_000)),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=100, eval_freq=800, stop_val=None),
        commander=dict(max_env_step=200_000),
    )
)
main_config = cooperative_navigation_matd3_default_config
