"""BitFlip with 15 bits by DQN and hindsight experience replay."""

from easydict import EasyDict

bitflip_her_dqn_default_config = EasyDict(
    dict(
        env=dict(
            env_type='bitflip',
            import_names=['app_zoo.classic_control.bitflip.envs.bitflip_env'],
            n_bits=15,
            actor_env_num=8,
            evaluator_env_num=8,
        ),
        policy=dict(
            policy_type='dqn',
            model=dict(hidden_dim_list=[128, 128], dueling=False),
            learn=dict(
                train_step=32,
                batch_size=128,
                learning_rate=1e-3,
                algo=dict(target_update_freq=100, discount_factor=0.8),
            ),
            collect=dict(traj_len='inf'),
            command=dict(eps=dict(start=0.2, end=0.2)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=50000)),
        actor=dict(n_episode=8, transform=dict(her=dict(strategy='future', k=4))),
        evaluator=dict(n_episode=64, eval_freq=500, stop_val=0.9),
        commander=dict(max_env_step=500_000),
    )
)
main_config = bitflip_her_dqn_default_config
