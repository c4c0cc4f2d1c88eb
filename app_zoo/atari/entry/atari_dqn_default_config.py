"""Atari games by DQN: `-c atari_dqn -o env.env_id=Breakout`."""

from easydict import EasyDict

atari_dqn_default_config = EasyDict(
    dict(
        env=dict(env_type='atari', env_id='Pong', actor_env_num=8, evaluator_env_num=8, env_manager_type='vector'),
        policy=dict(
            policy_type='dqn',
            model=dict(model_type='conv_discrete_net', hidden_dim_list=[512]),
            learn=dict(
                train_step=2,
                batch_size=32,
                learning_rate=1e-4,
                grad_clip_norm=10.0,
                init_data_count=20_000,
                algo=dict(target_update_freq=1000, discount_factor=0.99, huber=True, nstep=3),
            ),
            command=dict(eps=dict(type='linear', start=1.0, end=0.01, decay=100_000), eps_by='envstep'),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=200_000, frame_axis=0)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=8, eval_freq=20_000, stop_val=None),
        commander=dict(max_env_step=2_500_000),
    )
)
main_config = atari_dqn_default_config
