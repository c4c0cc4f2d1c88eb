"""Cooperative navigation, three agents, by COMA without a memory."""

from easydict import EasyDict

cooperative_navigation_coma_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cooperative_navigation',
            actor_env_num=8,
            evaluator_env_num=20,
            env_manager_type='vector',
        ),
        policy=dict(
            policy_type='coma',
            model=dict(hidden_dim_list=[64, 64], lstm_type=None, agent_ids=True),
            learn=dict(
                batch_size=8,
                epochs=2,
                learning_rate=1e-3,
                algo=dict(discount_factor=0.9, reward_scale=0.3),
            ),
            collect=dict(unroll_len=25, traj_len='inf'),
            command=dict(eps=dict(type='linear', start=0.1, end=0.02, decay=50000)),
        ),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=100, eval_freq=160, stop_val=None),
        commander=dict(max_env_step=200_000),
    )
)
main_config = cooperative_navigation_coma_default_config
