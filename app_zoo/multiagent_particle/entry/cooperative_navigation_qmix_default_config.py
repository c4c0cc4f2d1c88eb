"""Cooperative navigation, three agents, by QMIX without a memory."""

from easydict import EasyDict

cooperative_navigation_qmix_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cooperative_navigation',
            actor_env_num=8,
            evaluator_env_num=20,
            limit_ends=True,
            env_manager_type='vector',
        ),
        policy=dict(
            policy_type='qmix',
            model=dict(hidden_dim_list=[64, 64], lstm_type=None, agent_ids=True, mixing_dim=32),
            learn=dict(
                train_step=8,
                batch_size=32,
                learning_rate=5e-4,
                algo=dict(target_update_freq=200, standardise_rewards=True),
            ),
            collect=dict(unroll_len=25, traj_len='inf'),
            command=dict(eps=dict(type='linear', start=1.0, end=0.05, decay=50000)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=1000)),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=100, eval_freq=800, stop_val=None),
        commander=dict(max_env_step=200_000),
    )
)
main_config = cooperative_navigation_qmix_default_config
