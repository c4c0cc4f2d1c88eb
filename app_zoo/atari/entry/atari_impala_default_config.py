"""Atari games by IMPALA: `-c atari_impala -o env.env_id=Breakout`."""

from easydict import EasyDict

atari_impala_default_config = EasyDict(
    dict(
        env=dict(env_type='atari', env_id='Pong', actor_env_num=16, evaluator_env_num=8, env_manager_type='vector'),
        policy=dict(
            policy_type='impala',
            model=dict(model_type='conv_vac', hidden_dim_list=[512], head_layer_num=0, ortho_init=True),
            learn=dict(
                train_step=1,
                batch_size=32,
                learning_rate=6e-4,
                learning_rate_schedule='linear',
                grad_clip_norm=40.0,
                algo=dict(discount_factor=0.99, value_weight=0.5, entropy_weight=0.01),
            ),
            collect=dict(unroll_len=20, traj_len=20),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=64)),
        actor=dict(n_sample=32),
        evaluator=dict(n_episode=8, eval_freq=160, stop_val=None),
        commander=dict(max_env_step=2_500_000),
    )
)
main_config = atari_impala_default_config
