"""
What a league costs at every game: recording one, and a draw by prioritized fictitious self-play, with many players.

    python benchmark/league_bench.py [PLAYERS]
"""

import sys
import time
from collections.abc import Callable

import numpy as np

from nervex.league import HistoricalPlayer, OneVsOneLeague

CALLS, ROUNDS = 2000, 9


def league_of(players: int) -> OneVsOneLeague:
    """One learner that has won some of its games against each of so many snapshots."""
    league = OneVsOneLeague({'active_players': {'main_player': 1}, 'payoff': {'min_win_rate_games': 1}}, seed=0)
    (learner,), chance = league.active_players, np.random.default_rng(0)
    for k in range(players):
        past = HistoricalPlayer({}, 'default', league.payoff, '', f'past_{k}', parent_id=learner.player_id)
        league.admit(past)
        league.record({'player_id': (learner.player_id, f'past_{k}'), 'result': str(chance.choice(['wins', 'losses']))})
    return league


def best_us(call: Callable[[int], object]) -> float:
    """Microseconds of a call, of processor time, in the best of some rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for k in range(CALLS):
            call(k)
        found.append((time.process_time() - start) / CALLS * 1e6)
    return min(found)


def main() -> None:
    """Print one line for each."""
    players = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    league = league_of(players)
    learner = league.active_players[0]
    games = [{'player_id': (learner.player_id, f'past_{k % players}'), 'result': 'wins'} for k in range(CALLS)]
    for name, call in (
        ('payoff update', lambda k: league.payoff.update(games[k])),
        ('pfsp draw', lambda k: learner._pfsp_branch()),
        ('a game recorded, with Elo and TrueSkill', lambda k: league.record(games[k])),
    ):
        print(f'{name}, {players} players: {best_us(call):.1f} us')


if __name__ == '__main__':
    main()
