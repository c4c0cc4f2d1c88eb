"""The relay by MAPPO with a memory: who forgets the message can only guess (policy.model.lstm_type=null)."""

from easydict import EasyDict

relay_mappo_default_config = EasyDict(
    dict(
        env=dict(env_type='relay', wait=2, actor_env_num=8, evaluator_env_num=8, env_manager_type='base'),
        policy=dict(
            policy_type='mappo',
            model=dict(hidden_dim_list=[32], lstm_type='gru'),
            learn=dict(batch_size=16, epochs=4, learning_rate=5e-3),
            collect=dict(unroll_len=5, traj_len='inf'),
        ),
        actor=dict(n_episode=64),
        evaluator=dict(n_episode=40, eval_freq=160, stop_val=1.0),
        commander=dict(max_env_step=50000),
    )
)
main_config = relay_mappo_default_config
