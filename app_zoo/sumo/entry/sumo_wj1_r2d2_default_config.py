"""One crossing by R2D2; cars arrive by rates that change."""

from easydict import EasyDict

sumo_wj1_r2d2_default_config = EasyDict(
    dict(
        env=dict(env_type='sumo', net='wj1', actor_env_num=2, evaluator_env_num=2, env_manager_type='subprocess'),
        policy=dict(
            policy_type='r2d2',
            model=dict(hidden_dim_list=[64], lstm_hidden_dim=64),
            learn=dict(
                train_step=8,
                batch_size=16,
                learning_rate=5e-4,
                learning_rate_schedule='linear',
                init_data_count=32,
                algo=dict(target_update_freq=100, discount_factor=0.97, nstep=3),
            ),
            command=dict(eps=dict(type='linear', start=1.0, end=0.05, decay=10000), eps_by='envstep'),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=2000)),
        actor=dict(n_sample=4),
        evaluator=dict(n_episode=10, eval_freq=1000, stop_val=None),
        commander=dict(max_env_step=24000),
    )
)
main_config = sumo_wj1_r2d2_default_config
