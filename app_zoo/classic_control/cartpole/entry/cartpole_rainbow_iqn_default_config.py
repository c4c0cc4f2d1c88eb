"""CartPole by Rainbow with implicit quantiles (IQN)."""

from easydict import EasyDict

cartpole_rainbow_iqn_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='rainbow_dqn',
            use_iqn=True,
            model=dict(hidden_dim_list=[128, 128], num_quantiles=8, quantile_embedding_dim=64),
            learn=dict(
                train_step=4,
                batch_size=64,
                learning_rate=1e-3,
                init_data_count=256,
                algo=dict(target_update_freq=50, discount_factor=0.99, nstep=3, quantile_num=8),
            ),
            command=dict(eps=dict(start=0.95, end=0.05, decay=6000)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=20000)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=5, eval_freq=200, stop_val=195),
        commander=dict(max_env_step=100_000),
    )
)
main_config = cartpole_rainbow_iqn_default_config
