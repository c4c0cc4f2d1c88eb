"""AlphaStar's league of one race: a main player, a main exploiter and two league exploiters; on pysc2's mock."""

from easydict import EasyDict

_PHASE = dict(one_phase_step=50, strong_win_rate=0.7)  # there 2e9 steps of the game, and twice as many at most
alphastar_league_default_config = EasyDict(
    dict(
        env=dict(
            env_type='alphastar',
            import_names=['app_zoo.alphastar.envs'],
            mock=True,  # False: the game itself, where it is installed
            env_manager_type='vector',
            actor_env_num=2,
            evaluator_env_num=1,
            opponent_acts='sampled',
        ),
        policy=dict(
            policy_type='alphastar',
            import_names=['app_zoo.alphastar.policy'],
            collect=dict(unroll_len=16, traj_len=16),
            learn=dict(batch_size=8),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=16)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=2, eval_freq=100),
        commander=dict(
            commander_type='league',
            turn_rounds=10,
            max_train_iter=200,
            league=dict(
                active_players=dict(main_player=1, main_exploiter=1, league_exploiter=2),
                main_player=dict(branch_probs=dict(pfsp=0.5, sp=0.35, verification=0.15), **_PHASE),
                main_exploiter=dict(min_valid_win_rate=0.2, **_PHASE),
                league_exploiter=dict(mutate_prob=0.25, **_PHASE),
            ),
        ),
    )
)
main_config = alphastar_league_default_config
