"""The two-step game by QMIX: 8, where a team that sums its values stays at 7 (policy_type: vdn)."""

from easydict import EasyDict

two_step_qmix_default_config = EasyDict(
    dict(
        env=dict(env_type='two_step', actor_env_num=8, evaluator_env_num=1, env_manager_type='base'),
        policy=dict(
            policy_type='qmix',
            model=dict(hidden_dim_list=[32], lstm_type=None),
            learn=dict(train_step=8, batch_size=32, algo=dict(target_update_freq=50)),
            collect=dict(unroll_len=2, traj_len='inf'),
            command=dict(eps=dict(type='linear', start=1.0, end=1.0, decay=1)),  # everything is tried for ever
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=500)),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=4, eval_freq=100, stop_val=8.0),
        commander=dict(max_env_step=20000),
    )
)
main_config = two_step_qmix_default_config
