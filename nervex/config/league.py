"""Defaults of leagues, under the names that the documents use."""

from easydict import EasyDict

_PHASE = dict(one_phase_step=2000, strong_win_rate=0.7)
#: AlphaStar's league in small: one player of each kind in each category
one_vs_one_league_default_config = EasyDict(
    league=dict(
        league_type='one_vs_one',
        import_names=['nervex.league.starcraft_player'],
        player_category=['default'],
        path_policy='./policy',
        active_players=dict(main_player=1, main_exploiter=1, league_exploiter=1),
        main_player=dict(branch_probs=dict(pfsp=0.5, sp=0.35, verification=0.15), **_PHASE),
        main_exploiter=dict(min_valid_win_rate=0.2, **_PHASE),
        league_exploiter=dict(mutate_prob=0.25, **_PHASE),
        use_pretrain=False,
        use_pretrain_init_historical=False,
        pretrain_checkpoint_path={},
        payoff=dict(type='battle', decay=0.99, min_win_rate_games=8),
        max_active_player_job=3,
    )
)
solo_league_default_config = EasyDict(
    league=dict(
        league_type='solo',
        import_names=[],
        player_category=['default'],
        path_policy='./policy',
        active_players=dict(solo_active_player=1),
        solo_active_player=dict(one_phase_step=2000),
        payoff=dict(type='solo', buffer_size=100),
        max_active_player_job=3,
    )
)
