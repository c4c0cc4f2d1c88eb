"""Poker: rules, what is hidden, best responses against numbers that are known."""

import numpy as np
import pytest

from app_zoo.poker.envs import KuhnPoker, LeducPoker, average, exploitability, tabulate
from app_zoo.poker.envs.poker import CALL, FOLD, RAISE


def uniform(seen, legal):
    return legal / legal.sum(1, keepdims=True)


def play(game_class, deal, actions):
    """The first side's reward at the end of these actions."""
    game, row = game_class({}, 1), np.arange(1)
    game.begin(row, [np.random.default_rng(0)])
    game.deal[0] = deal
    for k, action in enumerate(actions):
        paid, over = game.move(row, np.array([[action, action]]))
        assert over[0] == (k == len(actions) - 1) and paid.sum() == 0
    return paid[0, 0]


def test_kuhn_pays_the_higher_card():
    assert play(KuhnPoker, [2, 1, 0], [CALL, CALL]) == 1
    assert play(KuhnPoker, [0, 1, 2], [CALL, RAISE, CALL]) == -2
    assert play(KuhnPoker, [0, 1, 2], [RAISE, FOLD]) == 1
    assert play(KuhnPoker, [2, 1, 0], [CALL, RAISE, FOLD]) == -1
    with pytest.raises(ValueError, match=r'action 0 is not legal; legal are \[1, 2\]'):
        play(KuhnPoker, [0, 1, 2], [FOLD])


def test_leduc_pays_pairs_first_and_splits_equal_ranks():
    assert play(LeducPoker, [0, 4, 1], [CALL, CALL, RAISE, CALL]) == 5  # J with J shown against K: 1 + 4
    assert play(LeducPoker, [4, 5, 0], [RAISE, RAISE, CALL, CALL, CALL]) == 0
    assert play(LeducPoker, [4, 2, 0], [RAISE, RAISE, CALL, RAISE, RAISE, CALL]) == 13  # 1 + 2 * 2 + 2 * 4
    assert play(LeducPoker, [4, 2, 0], [CALL, RAISE, CALL, CALL, RAISE, FOLD]) == -3


def test_the_other_card_is_not_seen_and_the_shown_one_only_later():
    game, rows = LeducPoker({}, 120), np.arange(120)
    game.begin(rows, [np.random.default_rng(k) for k in rows])
    game.deal = LeducPoker.all_deals()
    for rounds, kinds in ((0, 3), (1, 9)):
        assert (game.round == rounds).all()
        assert len(np.unique(game.view(rows, rows * 0)['observation'], axis=0)) == kinds
        for _ in range(2):
            _, over = game.move(rows, np.full((120, 2), CALL))
    assert over.all()


def test_exploitability_of_known_strategies():
    # Kuhn's equilibria with a bluff of 1/3 by the jack: king raises always, queen checks and calls by 2/3, ...
    def equilibrium(seen, legal):
        card, said = seen[:, :3].argmax(1), seen[:, 3:].reshape(-1, 4, 2)
        owes, first = legal[:, FOLD] > 0, said.sum((1, 2)) == 0
        bold = np.where(
            owes,
            np.where(card == 2, 1, np.where(card == 0, 0, np.where(said.sum((1, 2)) == 1, 1 / 3, 2 / 3))),  # calls
            np.where(first, np.choose(card, [1 / 3, 0, 1]), np.choose(card, [1 / 3, 0, 1])),  # raises
        )
        return np.where(owes[:, None], np.stack([1 - bold, bold, 0 * bold], 1), np.stack([0 * bold, 1 - bold, bold], 1))

    assert exploitability(KuhnPoker, uniform) == pytest.approx(11 / 24)
    assert exploitability(KuhnPoker, equilibrium) == pytest.approx(0, abs=1e-12)
    assert exploitability(LeducPoker, uniform) == pytest.approx(4.747222222 / 2)


def test_an_average_is_weighed_by_how_likely_each_strategy_comes_there():
    def always(action):
        def strategy(seen, legal):
            chance = np.zeros_like(legal)
            chance[np.arange(len(legal)), np.where(legal[:, action] > 0, action, CALL)] = 1
            return chance

        return strategy

    calls, raises = (tabulate(KuhnPoker, always(action)) for action in (CALL, RAISE))
    mixed, game = average([calls, raises]), KuhnPoker({}, 1)
    game.begin(np.arange(1), [np.random.default_rng(0)])
    seen = [game.view(np.arange(1), np.zeros(1, int))]
    assert mixed(seen[0]['observation'], seen[0]['action_mask'])[0].tolist() == [0, 0.5, 0.5]
    for _ in range(2):
        game.move(np.arange(1), np.array([[CALL if not game.said[0] else RAISE] * 2]))
    late = game.view(np.arange(1), np.zeros(1, int))  # checked, then the other raised: only who calls comes here
    assert mixed(late['observation'], late['action_mask'])[0].tolist() == [0, 1, 0]
    both = tabulate(KuhnPoker, uniform)
    assert exploitability(KuhnPoker, average([both, both])) == pytest.approx(11 / 24)


@pytest.mark.parametrize('game, name, states', [(KuhnPoker, 'kuhn_poker', 12), (LeducPoker, 'leduc_poker', 288)])
def test_open_spiel_knows_the_same_game(game, name, states):
    assert len(tabulate(game, uniform)) == states
    spiel = pytest.importorskip('pyspiel', reason='pip install nervex[openspiel]')
    state_rng, theirs = np.random.default_rng(0), spiel.load_game(name)
    for _ in range(300):
        state, actions, cards = theirs.new_initial_state(), [], []
        while not state.is_terminal():
            if state.is_chance_node():
                chosen = int(state_rng.choice([a for a, _ in state.chance_outcomes()]))
                cards.append(chosen)
            else:
                chosen = int(state_rng.choice(state.legal_actions()))
                actions.append(chosen)
            state.apply_action(chosen)
        if name == 'leduc_poker':  # the same numbers of actions and cards
            deal = [*cards, *[c for c in range(6) if c not in cards]][:3]
            assert play(game, deal, actions) == state.returns()[0]
        else:  # pass and bet: who bets answers a bet by calling it
            told, bet = [], False
            for action in actions:
                told.append((CALL if action else FOLD) if bet else (RAISE if action else CALL))
                bet = bet or bool(action)
            assert play(game, [*cards, 3 - sum(cards)], told) == state.returns()[0]
