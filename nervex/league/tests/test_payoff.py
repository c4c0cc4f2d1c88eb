"""Matchmaking, payoffs and ratings, by numbers worked by hand."""

import threading

import numpy as np
import pytest
import torch

from nervex.league import (
    BattleRecordDict,
    BattleSharedPayoff,
    Elo,
    SoloSharedPayoff,
    TrueSkill,
    create_payoff,
    elo_interval,
    fit_elo,
    pfsp,
    uniform,
)
from nervex.league.algorithm import draw


def test_pfsp_by_hand():
    rates = np.array([0.0, 0.5, 0.8])  # squared: 1, 0.25, 0.04; variance: 0, 0.25, 0.16
    assert pfsp(rates).tolist() == pytest.approx([1 / 1.29, 0.25 / 1.29, 0.04 / 1.29])
    assert pfsp(rates, 'variance').tolist() == pytest.approx([0, 0.25 / 0.41, 0.16 / 0.41])


@pytest.mark.parametrize('weighting', ['squared', 'variance'])
def test_pfsp_of_players_that_are_always_beaten_is_uniform(weighting):
    assert pfsp(np.ones(4), weighting).tolist() == [0.25] * 4
    assert uniform(np.ones(4)).tolist() == [0.25] * 4


@pytest.mark.parametrize('rates', [np.array([]), np.ones((2, 2)), np.array([0.5, np.nan]), np.array([1.5])])
def test_rates_that_are_none_are_refused(rates):
    for function in (pfsp, uniform):
        with pytest.raises(ValueError, match='win rates'):
            function(rates)


def test_an_unknown_weighting_names_the_nearest():
    with pytest.raises(ValueError, match="'squared'"):
        pfsp(np.ones(2), 'squarred')


def test_draws_follow_the_probabilities():
    generator = np.random.default_rng(0)
    counts = np.bincount([draw(np.array([0.1, 0.0, 0.9]), generator) for _ in range(20_000)], minlength=3)
    assert counts[1] == 0 and counts[0] / 20_000 == pytest.approx(0.1, abs=0.01)


def payoff(players='ab', **cfg):
    made = BattleSharedPayoff({'min_win_rate_games': 1, 'decay': 1.0, **cfg})
    for name in players:
        made.add_player(name)
    return made


def test_what_home_wins_away_loses():
    games = payoff()
    assert games.update({'player_id': ('a', 'b'), 'result': [['wins', 'draws'], ['losses', 'wins']]})
    assert games.record('a', 'b') == {'wins': 2, 'draws': 1, 'losses': 1, 'games': 4}
    assert games.record('b', 'a') == {'wins': 1, 'draws': 1, 'losses': 2, 'games': 4}
    assert games['a', 'b'] == pytest.approx(2.5 / 4) and games['b', 'a'] == pytest.approx(1.5 / 4)


def test_older_games_count_less():
    games = payoff(decay=0.5)
    games.update({'player_id': ('a', 'b'), 'result': ['wins', 'losses', 'losses']})
    # wins 1 -> .5 -> .25; losses 0 -> 1 -> 1.5; games 1 -> 1.5 -> 1.75
    assert games.record('a', 'b') == {'wins': 0.25, 'draws': 0, 'losses': 1.5, 'games': 1.75}
    assert BattleRecordDict(wins=4.0, games=4.0) * 0.5 == {'wins': 2, 'draws': 0, 'losses': 0, 'games': 2}


def test_few_games_say_nothing():
    games = payoff(min_win_rate_games=3)
    games.update({'player_id': ('a', 'b'), 'result': ['wins', 'wins']})
    assert games['a', 'b'] == 0.5
    games.update({'player_id': ('a', 'b'), 'result': 'wins'})
    assert games['a', 'b'] == 1.0 and games['b', 'a'] == 0.0


def test_lists_of_players_give_tables():
    games = payoff('abc')
    games.update({'player_id': ('a', 'b'), 'result': ['wins']})
    assert games[['a', 'b', 'c'], ['a', 'b', 'c']].tolist() == [[0.5, 1, 0.5], [0, 0.5, 0.5], [0.5, 0.5, 0.5]]
    assert games['a', ['b', 'c']].tolist() == [1, 0.5] and games[['a'], ['b']].shape == ()


def test_games_of_a_player_with_itself_count_once():
    games = payoff('a')
    games.update({'player_id': ('a', 'a'), 'result': ['wins']})
    assert games.record('a', 'a')['games'] == 1


def test_unknown_players_and_results():
    games = payoff()
    assert not games.update({'player_id': ('a', 'x'), 'result': ['wins']})
    with pytest.raises(KeyError, match="player of the payoff 'x'"):
        games['a', 'x']
    with pytest.raises(ValueError, match="'wins'"):
        games.update({'player_id': ('a', 'b'), 'result': ['win']})
    with pytest.raises(ValueError, match='takes part already'):
        games.add_player('a')
    with pytest.raises(ValueError, match='decay'):
        BattleSharedPayoff({'decay': 0})


def test_many_players_and_the_state(tmp_path):
    games, generator = payoff(''), np.random.default_rng(0)
    for k in range(100):
        games.add_player(f'p{k}')
    for _ in range(500):
        pair = [f'p{k}' for k in generator.choice(100, 2, replace=False)]
        games.update({'player_id': pair, 'result': [str(generator.choice(['wins', 'draws', 'losses']))]})
    torch.save(games.state_dict(), tmp_path / 'state')
    again = payoff('')
    again.load_state_dict(torch.load(tmp_path / 'state', weights_only=True))
    everybody = games.players
    assert again.players == everybody and np.array_equal(games[everybody, everybody], again[everybody, everybody])
    rates = games[everybody, everybody]
    assert np.allclose(rates + rates.T, 1.0)  # home and away are one game
    again.add_player('new')
    assert again['new', 'p0'] == 0.5


def test_threads_lose_no_game():
    games = payoff()

    def play():
        for _ in range(500):
            games.update({'player_id': ('a', 'b'), 'result': ['wins']})

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert games.record('a', 'b')['games'] == 2000 == games.record('b', 'a')['losses']


def test_solo_scores_are_the_newest():
    scores = create_payoff({'type': 'solo', 'buffer_size': 3})
    scores.add_player('a')
    assert np.isnan(scores['a'])
    assert scores.update({'player_id': 'a', 'result': [[1, 2], [3, 6]]})
    assert scores.scores('a') == [2, 3, 6] and scores['a'] == pytest.approx(11 / 3)
    again = SoloSharedPayoff({'buffer_size': 3})
    again.load_state_dict(scores.state_dict())
    assert again.scores('a') == [2, 3, 6]
    with pytest.raises(ValueError, match='battle'):
        create_payoff({'type': 'batle'})


def test_elo_by_hand():
    elo = Elo(k=32, start=1500)
    elo.update('a', 'b', 1)  # equal: half a point was expected
    assert elo.ratings == {'a': 1516, 'b': 1484}
    assert elo.expected('a', 'b') == pytest.approx(1 / (1 + 10 ** (-32 / 400)))
    elo.update('a', 'b', 0.5)
    assert elo.ratings['a'] == pytest.approx(1516 - 32 * (1 / (1 + 10 ** (-32 / 400)) - 0.5))
    assert sum(elo.ratings.values()) == pytest.approx(3000)


def test_true_skill_of_the_papers_example():
    skill = TrueSkill(tau=0.0, draw_probability=0.1)  # known values of the defaults: 29.396, 7.171; draw: 25, 6.458
    skill.update('a', 'b', 1)
    assert skill.skills['a'] == pytest.approx((29.396, 7.171), abs=2e-3)
    assert skill.skills['b'] == pytest.approx((20.604, 7.171), abs=2e-3)
    even = TrueSkill(tau=0.0, draw_probability=0.1)
    even.update('a', 'b', 0.5)
    assert even.skills['a'] == pytest.approx((25.0, 6.458), abs=2e-3)


def test_fitted_elo_recovers_the_odds():
    points = np.array([0.0, 200.0, 500.0])
    chance = 1 / (1 + 10 ** ((points - points[:, None]) / 400))
    games = 100_000.0 * (1 - np.eye(3))
    found = fit_elo(chance * games, games)
    assert (found - found[0]).tolist() == pytest.approx([0, 200, 500], abs=0.1)


def test_fitted_elo_stays_finite_and_intervals_hold_it():
    wins = np.array([[0.0, 30.0], [0.0, 0.0]])
    fit = fit_elo(wins, wins + wins.T)
    assert np.isfinite(fit).all() and fit[0] > fit[1]
    wins = np.array([[0.0, 60.0], [40.0, 0.0]])
    low, high = elo_interval(wins, np.zeros((2, 2)), np.random.default_rng(0))
    fit = fit_elo(wins, wins + wins.T)
    assert (low < fit).all() and (fit < high).all() and 20 < high[0] - low[0] < 120


def test_a_player_that_leaves_takes_its_games_along():
    one = payoff('abc', min_win_rate_games=0)
    one.update({'player_id': ('a', 'b'), 'result': ['wins']})
    one.update({'player_id': ('a', 'c'), 'result': ['losses']})
    one.remove_player('b')
    assert one.players == ['a', 'c'] and one.win_rates('a', ['c']).tolist() == [0] and one['c', 'a'] == 1
    one.add_player('b')
    assert one.record('a', 'b')['games'] == 0 and one.record('a', 'c')['games'] == 1
    with pytest.raises(KeyError, match='unknown player'):
        one.remove_player('d')
