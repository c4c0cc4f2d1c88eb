"""Three against a defender and a keeper, all three of them by MAPPO."""

from easydict import EasyDict

gfootball_3_vs_1_with_keeper_mappo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gfootball',
            scenario='academy_3_vs_1_with_keeper',
            controlled=3,
            rewards='scoring,checkpoints',
            actor_env_num=16,
            evaluator_env_num=4,
        ),
        policy=dict(
            policy_type='mappo',
            learn=dict(
                epochs=5,
                batch_size=64,
                learning_rate=5e-4,
                algo=dict(discount_factor=0.99, entropy_weight=0.01),
            ),
            collect=dict(unroll_len=20, traj_len='inf'),
        ),
        actor=dict(n_episode=32),
        evaluator=dict(n_episode=40, eval_freq=800, stop_val=None),
        commander=dict(max_env_step=5_000_000),
    )
)
main_config = gfootball_3_vs_1_with_keeper_mappo_default_config
