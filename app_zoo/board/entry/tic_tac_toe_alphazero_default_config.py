"""Tic-tac-toe by AlphaZero; solved when it loses none of 200 games to the perfect player."""

from easydict import EasyDict

tic_tac_toe_alphazero_default_config = EasyDict(
    dict(
        env=dict(
            env_type='tic_tac_toe',
            env_manager_type='vector',
            actor_env_num=64,
            evaluator_env_num=50,
            opponent='self',
            evaluator_opponent='perfect',
        ),
        policy=dict(
            policy_type='alphazero',
            model=dict(hidden_dim_list=[128, 128]),
            learn=dict(train_step=4, batch_size=256),
            collect=dict(search=dict(simulations=24)),
            eval=dict(simulations=32),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=20_000)),
        actor=dict(n_sample=128),
        evaluator=dict(n_episode=100, eval_freq=300, stop_val=0.0),
        commander=dict(max_env_step=60_000),
    )
)
main_config = tic_tac_toe_alphazero_default_config
