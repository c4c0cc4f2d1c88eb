"""CartPole from recorded episodes by conservative Q-learning: ``nervex -m offline -c cartpole_cql --data FOLDER``."""

from easydict import EasyDict

cartpole_cql_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='cql',
            model=dict(hidden_dim_list=[128, 128]),
            learn=dict(train_step=10, batch_size=64, learning_rate=1e-3),
        ),
        actor=dict(n_sample=64),
        evaluator=dict(n_episode=5, eval_freq=200, stop_val=195),
        commander=dict(max_train_iter=4000),
    )
)
main_config = cartpole_cql_default_config
