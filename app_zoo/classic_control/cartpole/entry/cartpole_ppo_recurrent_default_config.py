"""CartPole by PPO with a memory (LSTM)."""

from easydict import EasyDict

cartpole_ppo_recurrent_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='ppo_recurrent',
            model=dict(hidden_dim_list=[64], lstm_hidden_dim=64),
            learn=dict(
                epochs=10,
                batch_size=8,
                learning_rate=2e-3,
                algo=dict(entropy_weight=0.0, discount_factor=0.98, gae_lambda=0.8, use_value_clip=False),
            ),
            collect=dict(unroll_len=16, traj_len=64),
        ),
        actor=dict(n_sample=32),
        evaluator=dict(n_episode=5, eval_freq=40, stop_val=195),
        commander=dict(max_env_step=200_000),
    )
)
main_config = cartpole_ppo_recurrent_default_config
