"""Connect four by AlphaZero: a search with a learned policy and value that plays both sides."""

from easydict import EasyDict

connect_four_alphazero_default_config = EasyDict(
    dict(
        env=dict(
            env_type='connect_four',
            env_manager_type='vector',
            flatten_obs=False,
            actor_env_num=512,
            evaluator_env_num=50,
            opponent='self',
            random_moves=6,
            evaluator_opponent='alpha_beta_4',
            evaluator_random_moves=2,
        ),
        policy=dict(
            policy_type='alphazero',
            model=dict(
                model_type='conv_vac',
                channels=[64],
                kernels=[4],
                strides=[1],
                hidden_dim_list=[384, 384],
                head_layer_num=0,
            ),
            learn=dict(train_step=4, batch_size=512, learning_rate=1e-3, algo=dict(gae_lambda=0.9)),
            collect=dict(search=dict(simulations=16, bfloat16=True)),
            eval=dict(simulations=256),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=200_000)),
        actor=dict(n_sample=512),
        evaluator=dict(n_episode=50, eval_freq=2000),
        learner=dict(keep_ckpt=None, hook=dict(save_ckpt_after_iter=1000)),
        commander=dict(max_env_step=2_000_000),
    )
)
main_config = connect_four_alphazero_default_config
