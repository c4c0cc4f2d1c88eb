"""Atari games by A2C: `-c atari_a2c -o env.env_id=Breakout`."""

from easydict import EasyDict

atari_a2c_default_config = EasyDict(
    dict(
        env=dict(env_type='atari', env_id='Pong', actor_env_num=16, evaluator_env_num=8, env_manager_type='vector'),
        policy=dict(
            policy_type='a2c',
            model=dict(model_type='conv_vac', hidden_dim_list=[512], head_layer_num=0, ortho_init=True),
            learn=dict(
                batch_size=80,
                optimizer='rmsprop',
                optimizer_eps=1e-5,
                learning_rate=7e-4,
                learning_rate_schedule='linear',
                grad_clip_norm=0.5,
                algo=dict(discount_factor=0.99, gae_lambda=1.0, value_weight=0.25, entropy_weight=0.01),
            ),
        ),
        actor=dict(n_sample=16 * 5),
        evaluator=dict(n_episode=8, eval_freq=4000, stop_val=None),
        commander=dict(max_env_step=2_500_000),
    )
)
main_config = atari_a2c_default_config
