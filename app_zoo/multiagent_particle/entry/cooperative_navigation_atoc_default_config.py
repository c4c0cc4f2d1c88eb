"""Cooperative navigation by continuous pushes, three agents, by ATOC: who wants to talks to its nearest comrade."""

from easydict import EasyDict

cooperative_navigation_atoc_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cooperative_navigation',
            continuous=True,
            observe_positions=True,
            team_reward='each',
            actor_env_num=8,
            evaluator_env_num=20,
            env_manager_type='vector',
        ),
        policy=dict(
            policy_type='atoc',
            model=dict(thought_dim=32, agent_per_group=2, hidden_dim=64),
            learn=dict(train_step=8, batch_size=256, learning_rate=1e-3, algo=dict(discount_factor=0.95)),
            collect=dict(noise_sigma=0.2, random_steps=2000),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=100_000)),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=100, eval_freq=800, stop_val=None),
        commander=dict(max_env_step=200_000),
    )
)
main_config = cooperative_navigation_atoc_default_config
