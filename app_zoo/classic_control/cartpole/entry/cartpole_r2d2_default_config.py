"""CartPole by R2D2, a recurrent network."""

from easydict import EasyDict

cartpole_r2d2_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='r2d2',
            model=dict(hidden_dim_list=[64], lstm_hidden_dim=64),
            learn=dict(
                train_step=8,
                batch_size=16,
                learning_rate=5e-4,
                init_data_count=32,
                algo=dict(target_update_freq=100, discount_factor=0.97, nstep=3),
            ),
            command=dict(eps=dict(start=0.95, end=0.05, decay=3000)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=2000)),
        actor=dict(n_sample=4),
        evaluator=dict(n_episode=5, eval_freq=100, stop_val=195),
        commander=dict(max_env_step=100_000),
    )
)
main_config = cartpole_r2d2_default_config
