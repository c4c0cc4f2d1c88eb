"""LunarLander by PPO, at the settings that RL Baselines3 Zoo has for it."""

from easydict import EasyDict

lunarlander_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='LunarLander-v3',
            actor_env_num=16,
            evaluator_env_num=10,
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
                    discount_factor=0.999, gae_lambda=0.98, value_weight=1.0, entropy_weight=0.01, use_value_clip=False
                ),
            ),
        ),
        actor=dict(n_sample=16 * 1024),
        evaluator=dict(n_episode=10, eval_freq=1024, stop_val=200),
        commander=dict(max_env_step=1_000_000),
    )
)
main_config = lunarlander_ppo_default_config
