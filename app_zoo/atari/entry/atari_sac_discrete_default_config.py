"""Atari games by SAC for discrete actions: `-c atari_sac_discrete -o env.env_id=Breakout`."""

from easydict import EasyDict

atari_sac_discrete_default_config = EasyDict(
    dict(
        env=dict(env_type='atari', env_id='Pong', actor_env_num=8, evaluator_env_num=8, env_manager_type='vector'),
        policy=dict(
            policy_type='sac_discrete',
            model=dict(model_type='conv_sac_discrete', hidden_dim_list=[512]),
            learn=dict(
                train_step=2,
                batch_size=32,
                learning_rate=3e-4,
                optimizer_eps=1e-4,
                init_data_count=20_000,
                algo=dict(target_theta=0.005, discount_factor=0.99, target_entropy=0.3),
            ),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=200_000, frame_axis=0)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=8, eval_freq=20_000, stop_val=None),
        commander=dict(max_env_step=2_500_000),
    )
)
main_config = atari_sac_discrete_default_config
