"""Connect four by PPO against its newest snapshot, evaluated against a search of depth 2."""

from easydict import EasyDict

connect_four_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='connect_four',
            env_manager_type='vector',
            actor_env_num=256,
            evaluator_env_num=50,
            opponent_acts='sampled',
            evaluator_opponent='alpha_beta_2',
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[256, 256]),
            learn=dict(
                epochs=4,
                batch_size=1024,
                learning_rate=1e-3,
                algo=dict(discount_factor=0.99, entropy_weight=0.02),
            ),
        ),
        actor=dict(n_sample=8192),
        evaluator=dict(n_episode=100, eval_freq=640),
        commander=dict(selfplay='latest', snapshot_freq=64, max_env_step=1_500_000),
    )
)
main_config = connect_four_ppo_default_config
