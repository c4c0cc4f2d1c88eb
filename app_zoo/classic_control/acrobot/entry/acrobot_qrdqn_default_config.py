"""Acrobot by quantile regression DQN, at the settings that RL Baselines3 Zoo has for it."""

from easydict import EasyDict

acrobot_qrdqn_default_config = EasyDict(
    dict(
        env=dict(env_type='gym', env_id='Acrobot-v1', actor_env_num=1, evaluator_env_num=10),
        policy=dict(
            policy_type='qrdqn',
            model=dict(hidden_dim_list=[256, 256], num_quantiles=25),
            learn=dict(
                train_step=4,
                batch_size=128,
                learning_rate=6.3e-4,
                optimizer_eps=0.01 / 128,
                grad_clip_norm=10.0,
                algo=dict(target_update_freq=250, discount_factor=0.99, double_q=False),
            ),
            command=dict(eps=dict(type='linear', start=1.0, end=0.1, decay=12_000), eps_by='envstep'),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=50_000)),
        actor=dict(n_sample=4),
        evaluator=dict(n_episode=10, eval_freq=2500, stop_val=-90),
        commander=dict(max_env_step=100_000),
    )
)
main_config = acrobot_qrdqn_default_config
