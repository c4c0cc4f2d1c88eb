"""Imitation of a scripted player, whose files ``entry/bot.py`` writes: ``-m offline -c gfootball_il --data FOLDER``."""

from easydict import EasyDict

gfootball_il_default_config = EasyDict(
    dict(
        env=dict(env_type='gfootball', scenario='academy_empty_goal', actor_env_num=8, evaluator_env_num=4),
        policy=dict(
            policy_type='il',
            model=dict(  # that of gfootball_3_vs_1_with_keeper_ppo, which can go on with the clone
                model_type='fc_vac',
                hidden_dim_list=[128, 128],
                share_encoder=False,
                head_layer_num=0,
                activation='tanh',
            ),
            learn=dict(train_step=10, batch_size=128, learning_rate=1e-3, algo=dict(entropy_weight=0.02)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=200_000)),
        actor=dict(n_sample=64),
        evaluator=dict(n_episode=20, eval_freq=1000, stop_val=None),
        commander=dict(max_train_iter=4000),
    )
)
main_config = gfootball_il_default_config
