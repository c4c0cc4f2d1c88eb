"""CartPole by IMPALA, from a small replay buffer of sequences."""

from easydict import EasyDict

cartpole_impala_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='impala',
            model=dict(hidden_dim_list=[64, 64]),
            learn=dict(
                train_step=8,
                batch_size=16,
                learning_rate=1e-3,
                algo=dict(entropy_weight=0.005, discount_factor=0.98),
            ),
            collect=dict(unroll_len=16, traj_len=16),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=64)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=5, eval_freq=100, stop_val=195),
        commander=dict(max_env_step=200_000),
    )
)
main_config = cartpole_impala_default_config
