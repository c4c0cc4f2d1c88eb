"""CartPole by soft Q-learning."""

from easydict import EasyDict

cartpole_sqn_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='sqn',
            model=dict(hidden_dim_list=[128, 128]),
            learn=dict(
                train_step=4,
                batch_size=64,
                learning_rate=5e-4,
                init_data_count=1000,
                algo=dict(target_theta=0.02, target_entropy=0.6, discount_factor=0.97),
            ),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=20000)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=5, eval_freq=200, stop_val=195),
        commander=dict(max_env_step=100_000),
    )
)
main_config = cartpole_sqn_default_config
