"""Slime volleyball by DQN against the package's own player."""

from easydict import EasyDict

slime_volley_dqn_default_config = EasyDict(
    dict(
        env=dict(
            env_type='slime_volley',
            frames=4,
            env_manager_type='vector',
            actor_env_num=32,
            evaluator_env_num=20,
            opponent='builtin',
        ),
        policy=dict(
            policy_type='dqn',
            model=dict(hidden_dim_list=[128, 128]),
            learn=dict(
                train_step=4,
                batch_size=256,
                learning_rate=5e-4,
                algo=dict(discount_factor=0.99, nstep=5, target_update_freq=500, huber=True),
            ),
            command=dict(eps=dict(type='linear', start=1.0, end=0.05, decay=200_000), eps_by='envstep'),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=300_000)),
        actor=dict(n_sample=128),
        evaluator=dict(n_episode=40, eval_freq=2500),
        commander=dict(max_env_step=1_250_000),
    )
)
main_config = slime_volley_dqn_default_config
