"""Rock-paper-scissors: payoffs, exploitability, mistakes."""

import numpy as np
import pytest

from app_zoo.matrix_games.envs import RockPaperScissors, exploitability


def test_payoffs_of_both_sides():
    plain, biased = (RockPaperScissors({'payoff': name}, 9) for name in ('plain', 'biased'))
    actions = np.array([(a, b) for a in range(3) for b in range(3)])
    for game, rock_beats_scissors in ((plain, 1), (biased, 2)):
        game.begin(np.arange(9), [])
        paid, over = game.move(np.arange(9), actions)
        assert paid[:, 0].tolist() == [0, -1, rock_beats_scissors, 1, 0, -1, -rock_beats_scissors, 1, 0]
        assert (paid.sum(1) == 0).all() and over.all()


def test_exploitability_by_hand():
    assert exploitability([1 / 3] * 3) == pytest.approx(0)
    assert exploitability([1, 0, 0]) == 1  # by paper
    assert exploitability([0.5, 0.25, 0.25]) == 0.25  # paper: 0.5 - 0.25
    assert exploitability([0.25, 0.5, 0.25], 'biased') == pytest.approx(0)
    assert exploitability([1 / 3] * 3, 'biased') == pytest.approx(1 / 3)  # rock: (0 - 1 + 2) / 3


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="unknown payoff table 'plane'; did you mean 'plain'"):
        RockPaperScissors({'payoff': 'plane'})
    game = RockPaperScissors({}, 1)
    game.begin(np.arange(1), [])
    with pytest.raises(ValueError, match=r'an action is 0, 1 or 2, got \[0 3\]'):
        game.move(np.arange(1), np.array([[0, 3]]))
