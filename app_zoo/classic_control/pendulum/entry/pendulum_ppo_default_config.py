"""Pendulum by PPO with a Gaussian policy."""

from easydict import EasyDict

pendulum_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='Pendulum-v1',
            use_act_scale=True,
            actor_env_num=8,
            evaluator_env_num=10,
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[64, 64], share_encoder=False, activation='tanh'),
            learn=dict(
                epochs=10,
                batch_size=128,
                learning_rate=3e-3,
                algo=dict(entropy_weight=0.0, discount_factor=0.97, use_value_clip=False, reward_scale=0.1),
            ),
        ),
        actor=dict(n_sample=2048),
        evaluator=dict(n_episode=20, eval_freq=80, stop_val=-250),
        commander=dict(max_env_step=300_000),
    )
)
main_config = pendulum_ppo_default_config
