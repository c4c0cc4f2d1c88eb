"""Tic-tac-toe by PPO against snapshots of itself; solved when it loses none of 200 games to the perfect player."""

from easydict import EasyDict

tic_tac_toe_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='tic_tac_toe',
            env_manager_type='vector',
            actor_env_num=128,
            evaluator_env_num=50,
            opponent_acts='sampled',  # so that snapshots try things out, too
            evaluator_opponent='perfect',
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[128, 128]),
            learn=dict(
                epochs=4,
                batch_size=512,
                learning_rate=1e-3,
                algo=dict(discount_factor=1.0, entropy_weight=0.02),
            ),
        ),
        actor=dict(n_sample=4096),
        evaluator=dict(n_episode=100, eval_freq=320, stop_val=0.0),
        commander=dict(selfplay='pool', snapshot_freq=160, snapshot_keep=8, max_env_step=1_000_000),
    )
)
main_config = tic_tac_toe_ppo_default_config
