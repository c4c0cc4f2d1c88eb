"""Self-play: players, who plays whom, what is known of their games. Names are imported when they are first used."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.league.algorithm': 'pfsp uniform',
    'nervex.league.base_league': 'BaseLeague OneVsOneLeague create_league register_league',
    'nervex.league.league_wrapper': 'LeagueWrapper league_wrapper',
    'nervex.league.player': (
        'ActivePlayer HistoricalPlayer NaiveSpPlayer Player SoloActivePlayer create_player register_player'
    ),
    'nervex.league.rating': 'Elo TrueSkill elo_interval fit_elo',
    'nervex.league.shared_payoff': 'BattleRecordDict BattleSharedPayoff SoloPayoff SoloSharedPayoff create_payoff',
    'nervex.league.solo_league': 'SoloLeague',
    'nervex.league.starcraft_player': 'LeagueExploiter MainExploiter MainPlayer',
}
__getattr__, __dir__, _LAZY = lazy_exports(__name__, _HOMES)
__all__ = [*_LAZY]
