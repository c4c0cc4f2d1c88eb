"""Three against a defender and a keeper, by PPO for whoever is at the ball, from the clone of a scripted player."""

from easydict import EasyDict

gfootball_3_vs_1_with_keeper_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gfootball',
            scenario='academy_3_vs_1_with_keeper',
            rewards='scoring,checkpoints',
            actor_env_num=2,  # of more games in a process the engine makes fewer steps a second
            evaluator_env_num=2,
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[128, 128], share_encoder=False, head_layer_num=0, activation='tanh'),
            learn=dict(
                epochs=4,
                batch_size=256,
                learning_rate=3e-4,
                grad_clip_norm=0.5,
                algo=dict(discount_factor=0.993, gae_lambda=0.95, entropy_weight=0.003),
            ),
        ),
        actor=dict(n_sample=2 * 1024),
        evaluator=dict(n_episode=40, eval_freq=640, stop_val=None),
        commander=dict(max_env_step=5_000_000),
    )
)
main_config = gfootball_3_vs_1_with_keeper_ppo_default_config
