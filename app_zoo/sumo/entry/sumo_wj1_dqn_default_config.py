"""One crossing by DQN; cars arrive by rates that change."""

from easydict import EasyDict

sumo_wj1_dqn_default_config = EasyDict(
    dict(
        env=dict(env_type='sumo', net='wj1', actor_env_num=2, evaluator_env_num=2, env_manager_type='subprocess'),
        policy=dict(
            policy_type='sumo_dqn',
            import_names=['app_zoo.sumo.policy.sumo_dqn'],
            learn=dict(init_data_count=1000),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=50000)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=10, eval_freq=2000, stop_val=None),
        commander=dict(max_env_step=24000),
    )
)
main_config = sumo_wj1_dqn_default_config
