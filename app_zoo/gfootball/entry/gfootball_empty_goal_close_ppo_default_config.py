"""A goal without a keeper, some steps away, by PPO."""

from easydict import EasyDict

gfootball_empty_goal_close_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gfootball',
            scenario='academy_empty_goal_close',
            rewards='scoring,checkpoints',
            actor_env_num=8,
            evaluator_env_num=4,
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[64, 64], share_encoder=False, head_layer_num=0, activation='tanh'),
            learn=dict(
                epochs=4,
                batch_size=128,
                learning_rate=5e-4,
                grad_clip_norm=0.5,
                algo=dict(discount_factor=0.993, gae_lambda=0.95, entropy_weight=0.01),
            ),
        ),
        actor=dict(n_sample=8 * 128),
        evaluator=dict(n_episode=20, eval_freq=160, stop_val=0.95),
        commander=dict(max_env_step=200_000),
    )
)
main_config = gfootball_empty_goal_close_ppo_default_config
