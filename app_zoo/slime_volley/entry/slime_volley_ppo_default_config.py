"""Slime volleyball by PPO against the package's own player."""

from easydict import EasyDict

slime_volley_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='slime_volley',
            frames=4,
            env_manager_type='vector',
            actor_env_num=128,
            evaluator_env_num=20,
            opponent='builtin',
            opponent_acts='sampled',
            evaluator_opponent='builtin',
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[64, 64], head_hidden_dim=64, share_encoder=False, activation='tanh'),
            learn=dict(
                epochs=6,
                batch_size=1024,
                learning_rate=1e-3,
                algo=dict(discount_factor=0.99, entropy_weight=0.005),
            ),
        ),
        actor=dict(n_sample=8192),
        evaluator=dict(n_episode=40, eval_freq=720),
        commander=dict(max_env_step=1_250_000),
    )
)
main_config = slime_volley_ppo_default_config
