"""Tic-tac-toe by DQN against snapshots of itself; solved when it loses none of 200 games to the perfect player."""

from easydict import EasyDict

tic_tac_toe_dqn_default_config = EasyDict(
    dict(
        env=dict(
            env_type='tic_tac_toe',
            env_manager_type='vector',
            actor_env_num=64,
            evaluator_env_num=50,
            opponent_eps=0.2,  # so that openings differ
            evaluator_opponent='perfect',
        ),
        policy=dict(
            policy_type='dqn',
            model=dict(hidden_dim_list=[128, 128]),
            learn=dict(
                train_step=4,
                batch_size=256,
                learning_rate=1e-3,
                algo=dict(discount_factor=1.0, target_update_freq=200),
            ),
            command=dict(eps=dict(type='linear', start=1.0, end=0.2, decay=4000)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=60_000)),
        actor=dict(n_sample=128),
        evaluator=dict(n_episode=100, eval_freq=500, stop_val=0.0),
        commander=dict(selfplay='latest', snapshot_freq=200, max_env_step=500_000),
    )
)
main_config = tic_tac_toe_dqn_default_config
