"""Three crossings in a row as a team: one network, by which each learns from the queue on its own lanes."""

from easydict import EasyDict

sumo_wj3_iql_default_config = EasyDict(
    dict(
        env=dict(
            env_type='sumo_team',
            net='wj3',
            per_hour=300,
            longest_s=30,
            actor_env_num=4,
            evaluator_env_num=2,
            env_manager_type='subprocess',
        ),
        policy=dict(
            policy_type='iql',
            model=dict(hidden_dim_list=[128, 128], lstm_type=None, agent_ids=False),
            learn=dict(
                train_step=16,
                batch_size=16,
                learning_rate=5e-4,
                learning_rate_schedule='linear',
                init_data_count=100,  # sequences of ten steps
                algo=dict(target_update_freq=100, discount_factor=0.97, td_lambda=0.5),
            ),
            collect=dict(unroll_len=10, traj_len=10),
            command=dict(eps=dict(type='linear', start=1.0, end=0.05, decay=4000)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=5000)),
        actor=dict(n_sample=4),
        evaluator=dict(n_episode=6, eval_freq=1600, stop_val=None),
        commander=dict(max_env_step=8000),
    )
)
main_config = sumo_wj3_iql_default_config
