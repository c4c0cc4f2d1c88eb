"""Kuhn poker by PPO against snapshots of itself, of which the average is hard to exploit."""

from easydict import EasyDict

kuhn_poker_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='kuhn_poker',
            env_manager_type='vector',
            actor_env_num=256,
            evaluator_env_num=50,
            opponent_acts='sampled',
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[32, 32]),
            learn=dict(
                epochs=4,
                batch_size=512,
                learning_rate=1e-3,
                algo=dict(entropy_weight=0.15, discount_factor=1.0, adv_norm=False, reward_scale=1.0),
            ),
        ),
        actor=dict(n_sample=2048),
        evaluator=dict(n_episode=50, eval_freq=2000),
        commander=dict(selfplay='pool', snapshot_freq=48, snapshot_keep=300, opponent_cache=300, max_env_step=200_000),
    )
)
main_config = kuhn_poker_ppo_default_config
