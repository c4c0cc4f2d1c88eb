"""CartPole by phasic policy gradient, with a buffer each for policy and value."""

from easydict import EasyDict

cartpole_ppg_default_config = EasyDict(
    dict(
        env=dict(
            env_type='cartpole',
            import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
            actor_env_num=8,
            evaluator_env_num=5,
        ),
        policy=dict(
            policy_type='ppg',
            model=dict(hidden_dim_list=[64, 64]),
            learn=dict(
                epochs=10,
                batch_size=128,
                learning_rate=2e-3,
                aux_freq=80,
                algo=dict(entropy_weight=0.0, discount_factor=0.98, gae_lambda=0.9),
            ),
        ),
        replay_buffer=dict(buffer_name=['policy', 'value'], value=dict(type='replay', meta_maxlen=1024)),
        actor=dict(n_sample=512),
        evaluator=dict(n_episode=5, eval_freq=40, stop_val=195),
        commander=dict(max_env_step=200_000),
    )
)
main_config = cartpole_ppg_default_config
