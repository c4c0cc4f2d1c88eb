"""CartPole by soft actor-critic for discrete actions."""

from easydict import EasyDict

cartpole_sac_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='sac_discrete',
            model=dict(hidden_dim_list=[64, 64]),
            learn=dict(
                train_step=4,
                batch_size=64,
                learning_rate=2e-3,
                init_data_count=256,
                algo=dict(discount_factor=0.99, target_theta=0.02, nstep=3),
            ),
            collect=dict(random_steps=256),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=20000)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=5, eval_freq=200, stop_val=195),
        commander=dict(max_env_step=50_000),
    )
)
main_config = cartpole_sac_default_config
