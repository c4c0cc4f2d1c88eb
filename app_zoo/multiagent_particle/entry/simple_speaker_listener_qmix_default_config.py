"""A speaker that sees the goal and a listener that can go there, by QMIX without a memory."""

from easydict import EasyDict

simple_speaker_listener_qmix_default_config = EasyDict(
    dict(
        env=dict(
            env_type='pettingzoo',
            env_id='mpe2.simple_speaker_listener_v4',
            make_kwargs=dict(max_cycles=25),
            actor_env_num=8,
            evaluator_env_num=20,
            env_manager_type='base',
        ),
        policy=dict(
            policy_type='qmix',
            model=dict(hidden_dim_list=[64, 64], lstm_type=None, agent_ids=True, mixing_dim=32),
            learn=dict(train_step=8, batch_size=32, learning_rate=5e-4, algo=dict(target_update_freq=200)),
            collect=dict(unroll_len=25, traj_len='inf'),
            command=dict(eps=dict(type='linear', start=1.0, end=0.05, decay=50000)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=5000)),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=100, eval_freq=800, stop_val=None),
        commander=dict(max_env_step=100_000),
    )
)
main_config = simple_speaker_listener_qmix_default_config
