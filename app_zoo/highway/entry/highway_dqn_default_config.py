"""Driving among other cars by DQN: `-c highway_dqn`. The simulation is slow, so that each env has a process."""

from easydict import EasyDict

highway_dqn_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='highway-fast-v0',
            flatten_obs=True,  # five cars, each with five numbers, as one vector
            env_manager_type='async_subprocess',
            actor_env_num=4,
            evaluator_env_num=4,
        ),
        policy=dict(
            policy_type='dqn',
            model=dict(hidden_dim_list=[256, 256], dueling=False),
            learn=dict(
                train_step=4,
                batch_size=64,
                learning_rate=5e-4,
                init_data_count=200,
                grad_clip_norm=10.0,
                algo=dict(target_update_freq=50, discount_factor=0.8, huber=True),
            ),
            command=dict(eps=dict(type='linear', start=1.0, end=0.05, decay=3000), eps_by='envstep'),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=15_000)),
        actor=dict(n_sample=4),
        evaluator=dict(n_episode=20, eval_freq=1000, stop_val=20),
        commander=dict(max_env_step=20_000),
    )
)
main_config = highway_dqn_default_config
