"""MuJoCo's bodies by PPO: `-c mujoco_ppo -o env.env_id=Hopper-v5`. The settings are those of the usual comparisons."""

from easydict import EasyDict

mujoco_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='HalfCheetah-v5',
            use_act_scale=True,
            actor_env_num=1,
            evaluator_env_num=10,
            manager=dict(norm_obs=True, norm_reward=True),
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(
                hidden_dim_list=[64, 64], share_encoder=False, head_layer_num=0, activation='tanh', ortho_init=True
            ),
            learn=dict(
                epochs=10,
                batch_size=64,
                learning_rate=3e-4,
                learning_rate_schedule='linear',
                algo=dict(discount_factor=0.99, gae_lambda=0.95, entropy_weight=0.0),
            ),
        ),
        actor=dict(n_sample=2048),
        evaluator=dict(n_episode=10, eval_freq=10 * 32 * 25),
        commander=dict(max_env_step=1_000_000),
    )
)
main_config = mujoco_ppo_default_config
