"""Slime volleyball by PPO against the package's own player, frame by frame."""

from easydict import EasyDict

slime_volley_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='slime_volley',
            env_manager_type='vector',
            actor_env_num=64,
            evaluator_env_num=40,
            opponent='builtin',
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(
                hidden_dim_list=[64, 64], share_encoder=False, head_layer_num=0, activation='tanh', ortho_init=True
            ),
            learn=dict(
                epochs=10,
                batch_size=256,
                learning_rate=5e-4,
                learning_rate_schedule='linear',
                algo=dict(discount_factor=0.99, gae_lambda=0.95, entropy_weight=0.001, use_value_clip=False),
            ),
        ),
        actor=dict(n_sample=64 * 256),
        evaluator=dict(n_episode=40, eval_freq=640 * 15),
        commander=dict(max_env_step=5_000_000),
    )
)
main_config = slime_volley_ppo_default_config
