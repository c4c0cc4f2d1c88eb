"""A ball that finds its way through a maze, by SAC and hindsight: `-c pointmaze_her_sac`."""

from easydict import EasyDict

pointmaze_her_sac_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='PointMaze_UMaze-v3',
            make_kwargs=dict(continuing_task=False),  # an episode ends at its goal
            wrappers=[dict(type='action_repeat', times=5)],  # a step is 0.01 s: single ones at random go nowhere
            max_episode_steps=60,  # 300 of the maze's own
            flatten_obs=True,  # achieved goal, desired goal, position and velocity as one vector
            use_act_scale=True,
            actor_env_num=4,
            evaluator_env_num=10,
        ),
        policy=dict(
            policy_type='sac',
            model=dict(hidden_dim_list=[128, 128]),
            learn=dict(
                train_step=200,
                batch_size=256,
                learning_rate=1e-3,
                init_data_count=1000,
                algo=dict(discount_factor=0.98, target_theta=0.01, alpha=0.01),
            ),
            collect=dict(traj_len='inf', random_steps=2000),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=500_000)),
        actor=dict(n_episode=4, transform=dict(her=dict(k=4, goal_dim=2, tolerance=0.45))),
        evaluator=dict(n_episode=50, eval_freq=1000, stop_val=0.95),
        commander=dict(max_env_step=60_000),
    )
)
main_config = pointmaze_her_sac_default_config
