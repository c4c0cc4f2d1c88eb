"""Three against a defender and a keeper, by PPO for whoever is at the ball, from the clone of a scripted player."""

from easydict import EasyDict

gfootball_3_vs_1_with_keeper_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gfootball',
            scenario='academy_3_vs_1_with_keeper',
            rewards='scoring',  # which the clone meets often enough
            actor_env_num=2,  # of more games in a process the engine makes fewer steps a second
            evaluator_env_num=2,
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[128, 128], share_encoder=False, head_layer_num=0, activation='tanh'),
            learn=dict(
                epochs=4,
                batch_size=512,
                learning_rate=1e-4,  # by 3e-4 the clone unlearns
                grad_clip_norm=0.5,
                algo=dict(discount_factor=0.997, gae_lambda=0.95, entropy_weight=0.0),
            ),
        ),
        actor=dict(n_sample=8192),
        evaluator=dict(n_episode=100, eval_freq=640, stop_val=None),
        commander=dict(max_env_step=5_000_000),
    )
)
main_config = gfootball_3_vs_1_with_keeper_ppo_default_config
