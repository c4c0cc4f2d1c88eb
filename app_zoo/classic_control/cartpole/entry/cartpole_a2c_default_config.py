"""CartPole by advantage actor-critic."""

from easydict import EasyDict

cartpole_a2c_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='a2c',
            model=dict(hidden_dim_list=[64, 64], share_encoder=False, activation='tanh'),
            learn=dict(
                batch_size=32,
                learning_rate=3e-3,
                optimizer='rmsprop',  # Adam with its small eps ends in one action for one seed of five
                optimizer_eps=1e-3,
            ),
        ),
        actor=dict(n_sample=32),
        evaluator=dict(n_episode=5, eval_freq=50, stop_val=195),
        commander=dict(max_env_step=200_000),
    )
)
main_config = cartpole_a2c_default_config
