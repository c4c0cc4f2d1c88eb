"""Atari games by R2D2: `-c atari_r2d2 -o env.env_id=Breakout`."""

from easydict import EasyDict

atari_r2d2_default_config = EasyDict(
    dict(
        env=dict(env_type='atari', env_id='Pong', actor_env_num=8, evaluator_env_num=8, env_manager_type='vector'),
        policy=dict(
            policy_type='r2d2',
            model=dict(model_type='convr_discrete_net', hidden_dim_list=[512], lstm_hidden_dim=512),
            learn=dict(
                train_step=1,
                batch_size=32,
                learning_rate=1e-4,
                optimizer_eps=1e-3,
                init_data_count=500,
                algo=dict(target_update_freq=600, discount_factor=0.997, nstep=5, burnin_step=20),
            ),
            collect=dict(unroll_len=40, traj_len=40),
            command=dict(eps=dict(type='linear', start=1.0, end=0.01, decay=100_000), eps_by='envstep'),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=5000)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=8, eval_freq=500, stop_val=None),
        commander=dict(max_env_step=2_500_000),
    )
)
main_config = atari_r2d2_default_config
