"""Rock-paper-scissors by a league: a main player, an exploiter of it, and one of all that was."""

from easydict import EasyDict

_PHASE = dict(one_phase_step=48)
rock_paper_scissors_league_default_config = EasyDict(
    dict(
        env=dict(
            env_type='rock_paper_scissors',
            env_manager_type='vector',
            actor_env_num=256,
            evaluator_env_num=50,
            opponent_acts='sampled',
        ),
        policy=dict(
            policy_type='ppo',
            model=dict(hidden_dim_list=[16]),
            learn=dict(epochs=4, batch_size=256, learning_rate=1e-2, algo=dict(entropy_weight=0.2, adv_norm=False)),
        ),
        actor=dict(n_sample=1024),
        evaluator=dict(n_episode=50, eval_freq=2000),
        commander=dict(
            commander_type='league',
            turn_rounds=1,
            snapshot_keep=300,
            opponent_cache=300,
            max_env_step=150_000,
            league=dict(
                active_players=dict(main_player=1, main_exploiter=1, league_exploiter=1),
                main_player=_PHASE,
                main_exploiter=_PHASE,
                league_exploiter=_PHASE,
            ),
        ),
    )
)
main_config = rock_paper_scissors_league_default_config
