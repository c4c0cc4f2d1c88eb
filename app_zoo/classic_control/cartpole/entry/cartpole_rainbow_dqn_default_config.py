"""CartPole by Rainbow: categorical returns, noisy layers, three steps, prioritized replay."""

from easydict import EasyDict

cartpole_rainbow_dqn_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='rainbow_dqn',
            model=dict(hidden_dim_list=[128, 128], v_min=0.0, v_max=35.0),  # 1 / (1 - 0.97) is the largest return
            learn=dict(
                train_step=4,
                batch_size=64,
                learning_rate=1e-3,
                init_data_count=256,
                algo=dict(target_update_freq=25, discount_factor=0.97, nstep=3),
            ),
            command=dict(eps=dict(start=0.95, end=0.05, decay=1500)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=20000)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=5, eval_freq=200, stop_val=195),
        commander=dict(max_env_step=100_000),
    )
)
main_config = cartpole_rainbow_dqn_default_config
