"""The drill: AlphaStar's network and losses against the own newest snapshot, on the spaces of StarCraft II."""

from easydict import EasyDict

alphastar_drill_default_config = EasyDict(
    dict(
        env=dict(
            env_type='alphastar_drill',
            import_names=['app_zoo.alphastar.envs'],
            env_manager_type='vector',
            actor_env_num=32,
            evaluator_env_num=32,
            max_units=8,
            max_selected=4,
            map_size=16,
            opponent_acts='sampled',
            evaluator_opponent='random',
        ),
        policy=dict(
            policy_type='alphastar',
            import_names=['app_zoo.alphastar.policy'],
            model=dict(width=32, core_dim=64, entity_layers=1, map_blocks=1),
            collect=dict(unroll_len=8, traj_len=8),
            learn=dict(
                batch_size=32,
                learning_rate=2e-3,
                algo=dict(discount_factor=0.9, entropy_weight=0.003),  # scenes have nothing to do with each other
            ),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=64)),
        actor=dict(n_sample=32),
        evaluator=dict(n_episode=64, eval_freq=50, stop_val=6.0),
        commander=dict(selfplay='latest', snapshot_freq=20, max_env_step=150_000),
    )
)
main_config = alphastar_drill_default_config
