"""Pendulum from recorded episodes by conservative Q-learning: ``nervex -m offline -c pendulum_cql --data FOLDER``."""

from easydict import EasyDict

pendulum_cql_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='Pendulum-v1',
            use_act_scale=True,
            actor_env_num=4,
            evaluator_env_num=10,
            manager=dict(norm_obs=True),  # by the mean and variance of the data
        ),
        policy=dict(
            policy_type='cql_continuous',
            model=dict(hidden_dim_list=[64, 64]),
            learn=dict(
                train_step=10,
                batch_size=128,
                learning_rate=1e-3,
                algo=dict(discount_factor=0.97, target_theta=0.01),
            ),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=20000)),
        actor=dict(n_sample=128),
        evaluator=dict(n_episode=20, eval_freq=500, stop_val=-250),
        commander=dict(max_train_iter=10000),
    )
)
main_config = pendulum_cql_default_config
