"""Pendulum by DroQ."""

from easydict import EasyDict

pendulum_droq_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='Pendulum-v1',
            use_act_scale=True,
            actor_env_num=4,
            evaluator_env_num=10,
        ),
        policy=dict(
            policy_type='droq',
            model=dict(hidden_dim_list=[64, 64]),
            learn=dict(
                train_step=40,
                batch_size=128,
                learning_rate=2e-3,
                init_data_count=500,
                algo=dict(discount_factor=0.97, target_theta=0.01, actor_update_freq=10),
            ),
            collect=dict(random_steps=500),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=20000)),
        actor=dict(n_sample=4),
        evaluator=dict(n_episode=20, eval_freq=5000, stop_val=-250),
        commander=dict(max_env_step=30_000),
    )
)
main_config = pendulum_droq_default_config
