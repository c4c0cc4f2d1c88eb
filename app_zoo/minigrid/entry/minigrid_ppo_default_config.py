"""Rooms of MiniGrid by PPO: `-c minigrid_ppo -o env.env_id=MiniGrid-Empty-8x8-v0`."""

from easydict import EasyDict

minigrid_ppo_default_config = EasyDict(
    dict(
        env=dict(
            env_type='gym',
            env_id='MiniGrid-DoorKey-5x5-v0',
            wrappers=['minigrid.wrappers:OneHotPartialObsWrapper'],  # what stands on a square, as bits
            flatten_obs=True,  # squares and direction as one vector; the text of the mission is left out
            actor_env_num=16,
            evaluator_env_num=10,
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(
                hidden_dim_list=[64, 64], share_encoder=False, head_layer_num=0, activation='tanh', ortho_init=True
            ),
            learn=dict(
                epochs=4,
                batch_size=256,
                learning_rate=1e-3,
                algo=dict(discount_factor=0.99, gae_lambda=0.95, entropy_weight=0.01, use_value_clip=False),
            ),
        ),
        actor=dict(n_sample=16 * 128),
        evaluator=dict(n_episode=20, eval_freq=4 * 8 * 5, stop_val=0.93),
        commander=dict(max_env_step=500_000),
    )
)
main_config = minigrid_ppo_default_config
