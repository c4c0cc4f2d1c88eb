"""Connect four by DQN that plays both sides, evaluated against a search of depth 4."""

from easydict import EasyDict

connect_four_dqn_default_config = EasyDict(
    dict(
        env=dict(
            env_type='connect_four',
            env_manager_type='vector',
            flatten_obs=False,
            show_legal=True,
            actor_env_num=64,
            evaluator_env_num=50,
            opponent='self',
            random_moves=6,
            evaluator_opponent='alpha_beta_4',
            evaluator_random_moves=2,
        ),
        policy=dict(
            policy_type='dqn',
            model=dict(model_type='conv_discrete_net', hidden_dim_list=[128], channels=[128], kernels=[4], strides=[1]),
            learn=dict(
                train_step=2,
                batch_size=256,
                learning_rate=1e-3,
                algo=dict(discount_factor=-0.95, target_update_freq=100, huber=True),
            ),
            command=dict(eps=dict(type='linear', start=1.0, end=0.1, decay=200_000), eps_by='envstep'),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=400_000)),
        actor=dict(n_sample=128),
        evaluator=dict(n_episode=50, eval_freq=6000),
        commander=dict(max_env_step=2_000_000),
    )
)
main_config = connect_four_dqn_default_config
