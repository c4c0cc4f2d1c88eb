"""MuJoCo's bodies by implicit Q-learning from recorded episodes: ``nervex -m offline --data FOLDER``."""

from easydict import EasyDict

mujoco_implicit_q_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='HalfCheetah-v5',
            use_act_scale=True,
            actor_env_num=1,
            evaluator_env_num=10,
            manager=dict(norm_obs=True),  # by the mean and variance of the data
        ),
        policy=dict(
            policy_type='implicit_q',
            model=dict(hidden_dim_list=[256, 256]),
            learn=dict(
                train_step=10,
                batch_size=256,
                learning_rate=3e-4,
                algo=dict(discount_factor=0.99, target_theta=0.005, expectile=0.7, beta=3.0),
            ),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=2_000_000)),
        actor=dict(n_sample=1),
        evaluator=dict(n_episode=10, eval_freq=10_000),
        commander=dict(max_train_iter=1_000_000),
    )
)
main_config = mujoco_implicit_q_default_config
