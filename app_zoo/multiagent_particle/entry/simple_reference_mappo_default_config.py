"""Two agents that know the goal of each other, by MAPPO without a memory."""

from easydict import EasyDict

simple_reference_mappo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='pettingzoo',
            env_id='mpe2.simple_reference_v3',
            make_kwargs=dict(max_cycles=25),
            actor_env_num=8,
            evaluator_env_num=20,
            env_manager_type='base',
        ),
        policy=dict(
            policy_type='mappo',
            learn=dict(batch_size=16, epochs=4, learning_rate=5e-4),
            collect=dict(unroll_len=25, traj_len='inf'),
        ),
        actor=dict(n_episode=32),
        evaluator=dict(n_episode=100, eval_freq=160, stop_val=None),
        commander=dict(max_env_step=100_000),
    )
)
main_config = simple_reference_mappo_default_config
