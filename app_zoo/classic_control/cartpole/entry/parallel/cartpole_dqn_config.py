"""
CartPole by double DQN, with a section for the coordinator, the learner and each actor: ``nervex -m parallel -c`` it.
What is left out is as for any parallel run; the shorter form is the serial config with ``-m parallel``.
"""

from easydict import EasyDict

from nervex.config import parallel_transform

cartpole_dqn_config = EasyDict(
    dict(
        coordinator=dict(
            commander=dict(
                parallel_commander_type='solo',
                actor_task_space=2,
                learner_task_space=1,
                max_iterations=50_000,
                eval_interval=200,
                policy=dict(
                    policy_type='dqn',
                    model=dict(hidden_dim_list=[128, 128], dueling=True),
                    learn=dict(
                        train_step=2,  # for as many samples as an actor has envs
                        batch_size=64,
                        learning_rate=2e-4,
                        init_data_count=1000,
                        algo=dict(target_update_freq=100, discount_factor=0.97, nstep=1),
                    ),
                    command=dict(eps=dict(type='exp', start=0.95, end=0.05, decay=3000)),
                ),
                actor_cfg=dict(
                    actor_type='zergling',
                    env_kwargs=dict(
                        env_type='cartpole',
                        import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
                        actor_env_num=4,  # of each actor
                        evaluator_env_num=5,
                        evaluator_episode_num=1,  # of each env
                        eval_stop_val=195,
                    ),
                ),
                replay_buffer_cfg=dict(agent=dict(meta_maxlen=20000)),
            ),
        ),
        learner0=dict(comm_learner_type='flask_fs', send_policy_freq=1),
        actor0=dict(comm_actor_type='flask_fs'),
        actor1=dict(comm_actor_type='flask_fs'),
    )
)
main_config = parallel_transform(cartpole_dqn_config)
