"""Atari games by PPO: `-c atari_ppo -o env.env_id=Breakout`. The settings are those of the usual comparisons."""

from easydict import EasyDict

atari_ppo_default_config = EasyDict(
    dict(
        env=dict(env_type='atari', env_id='Pong', actor_env_num=8, evaluator_env_num=8, env_manager_type='vector'),
        policy=dict(
            policy_type='ppo',
            model=dict(model_type='conv_vac', hidden_dim_list=[512], head_layer_num=0, ortho_init=True),
            learn=dict(
                epochs=4,
                batch_size=256,
                learning_rate=2.5e-4,
                learning_rate_schedule='linear',
                optimizer_eps=1e-5,
                grad_clip_norm=0.5,
                algo=dict(discount_factor=0.99, gae_lambda=0.95, clip_ratio=0.1, value_weight=0.5, entropy_weight=0.01),
            ),
        ),
        actor=dict(n_sample=1024),
        evaluator=dict(n_episode=8, eval_freq=1600, stop_val=None),
        commander=dict(max_env_step=2_500_000),
    )
)
main_config = atari_ppo_default_config
