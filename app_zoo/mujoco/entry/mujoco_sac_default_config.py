"""MuJoCo's bodies by SAC: `-c mujoco_sac -o env.env_id=Hopper-v5`. One update a step."""

from easydict import EasyDict

mujoco_sac_default_config = EasyDict(
    dict(
        env=dict(env_type='gym', env_id='HalfCheetah-v5', use_act_scale=True, actor_env_num=1, evaluator_env_num=10),
        policy=dict(
            policy_type='sac',
            model=dict(hidden_dim_list=[256, 256]),
            learn=dict(
                train_step=1,
                batch_size=256,
                learning_rate=3e-4,
                init_data_count=10_000,
                algo=dict(discount_factor=0.99, target_theta=0.005),
            ),
            collect=dict(random_steps=10_000),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=1_000_000)),
        actor=dict(n_sample=1),
        evaluator=dict(n_episode=10, eval_freq=10_000),
        commander=dict(max_env_step=1_000_000),
    )
)
main_config = mujoco_sac_default_config
