"""MountainCar by DQN, at the settings that RL Baselines3 Zoo has for it."""

from easydict import EasyDict

mountaincar_dqn_default_config = EasyDict(
    dict(
        env=dict(env_type='gym', env_id='MountainCar-v0', actor_env_num=1, evaluator_env_num=10),
        policy=dict(
            policy_type='dqn',
            model=dict(hidden_dim_list=[256, 256], dueling=False),
            learn=dict(
                train_step=8,
                batch_size=128,
                learning_rate=4e-3,
                grad_clip_norm=10.0,
                init_data_count=1000,
                algo=dict(target_update_freq=300, discount_factor=0.98, double_q=False, huber=True),
            ),
            command=dict(eps=dict(type='linear', start=1.0, end=0.07, decay=24_000), eps_by='envstep'),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=10_000)),
        actor=dict(n_sample=16),
        evaluator=dict(n_episode=10, eval_freq=2500, stop_val=-110),
        commander=dict(max_env_step=120_000),
    )
)
main_config = mountaincar_dqn_default_config
