"""Acrobot by PPO, at the settings that RL Baselines3 Zoo has for it."""

from easydict import EasyDict

acrobot_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='Acrobot-v1',
            actor_env_num=16,
            evaluator_env_num=10,
            manager=dict(norm_obs=True, norm_reward=True),
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(
                hidden_dim_list=[64, 64], share_encoder=False, head_layer_num=0, activation='tanh', ortho_init=True
            ),
            learn=dict(
                epochs=4,
                batch_size=64,
                learning_rate=3e-4,
                optimizer_eps=1e-5,
                algo=dict(
                    discount_factor=0.99, gae_lambda=0.94, value_weight=1.0, entropy_weight=0.0, use_value_clip=False
                ),
            ),
        ),
        actor=dict(n_sample=16 * 256),
        evaluator=dict(n_episode=10, eval_freq=2 * 256, stop_val=-90),
        commander=dict(max_env_step=200_000),
    )
)
main_config = acrobot_ppo_default_config
