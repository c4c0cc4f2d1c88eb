"""One crossing by PPO; cars arrive by rates that change."""

from easydict import EasyDict

sumo_wj1_ppo_default_config = EasyDict(
    dict(
        env=dict(env_type='sumo', net='wj1', actor_env_num=4, evaluator_env_num=2, env_manager_type='subprocess'),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[64, 64]),
            learn=dict(
                epochs=10,
                batch_size=64,
                learning_rate=1e-3,
                learning_rate_schedule='linear',
                algo=dict(discount_factor=0.97, gae_lambda=0.9, entropy_weight=0.01),
            ),
        ),
        actor=dict(n_sample=800),
        evaluator=dict(n_episode=10, eval_freq=1000, stop_val=None),
        commander=dict(max_env_step=60000),
    )
)
main_config = sumo_wj1_ppo_default_config
