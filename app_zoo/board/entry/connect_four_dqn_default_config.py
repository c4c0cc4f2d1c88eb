"""Connect four by DQN against snapshots of itself, evaluated against a search of depth 2."""

from easydict import EasyDict

connect_four_dqn_default_config = EasyDict(
    dict(
        env=dict(
            env_type='connect_four',
            env_manager_type='vector',
            actor_env_num=64,
            evaluator_env_num=50,
            opponent_eps=0.1,  # so that openings differ
            evaluator_opponent='alpha_beta_2',
        ),
        policy=dict(
            policy_type='dqn',
            model=dict(hidden_dim_list=[256, 256]),
            learn=dict(
                train_step=4,
                batch_size=256,
                learning_rate=5e-4,
                algo=dict(discount_factor=0.99, target_update_freq=500, nstep=3),
            ),
            collect=dict(traj_len=8),
            command=dict(eps=dict(type='linear', start=1.0, end=0.1, decay=8000)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=200_000)),
        actor=dict(n_sample=256),
        evaluator=dict(n_episode=100, eval_freq=2000),
        commander=dict(selfplay='latest', snapshot_freq=400, max_env_step=1_000_000),
    )
)
main_config = connect_four_dqn_default_config
