"""Board games: rules, equality with PettingZoo's, players by rule."""

import numpy as np
import pytest

from app_zoo.board.envs import CONNECT_FOUR, TIC_TAC_TOE, AlphaBeta, Boards, ConnectFour, PerfectTicTacToe, RandomPlayer
from nervex.utils import ConfigError


@pytest.mark.parametrize('rules, module', [(TIC_TAC_TOE, 'tictactoe_v3'), (CONNECT_FOUR, 'connect_four_v3')])
def test_random_games_are_pettingzoos_move_for_move(rules, module):
    pytest.importorskip('pygame')
    theirs = pytest.importorskip(f'pettingzoo.classic.{module}').env()
    rng, ends = np.random.default_rng(0), {'won': 0, 'draw': 0}
    for _ in range(60):
        theirs.reset()
        boards = Boards(rules, 1)
        while True:
            seen, _, _, _, _ = theirs.last()
            assert np.array_equal(boards.legal()[0], seen['action_mask'].astype(bool))
            axes = (2, 1, 0) if rules is TIC_TAC_TOE else (1, 2, 0)  # theirs has its columns first
            assert np.array_equal(boards.obs()[0].transpose(axes), seen['observation'])
            action = rng.choice(np.flatnonzero(boards.legal()[0]))
            mover = theirs.agent_selection
            theirs.step(int(action))
            won, full = boards.step(np.array([action]))
            assert theirs.rewards[mover] == won[0] and (theirs.terminations[mover] == (won[0] or full[0]))
            if won[0] or full[0]:
                ends['won' if won[0] else 'draw'] += 1
                break
    assert ends['won'] > 30 and (rules is CONNECT_FOUR or ends['draw'] > 2)


def play(first, second, rules, games):
    """(wins of the first, draws, wins of the second)."""
    boards, result, over = Boards(rules, games), np.zeros(games, int), np.zeros(games, bool)
    for move in range(rules.rows * rules.columns):
        actions = (first, second)[move % 2](boards)
        actions = np.where(boards.legal()[np.arange(games), actions], actions, boards.legal().argmax(1))
        won, full = boards.step(actions)
        result[~over & won] = 1 if move % 2 == 0 else -1
        over |= won | full
        if over.all():
            break
        boards.reset(np.flatnonzero(over))
        boards.moves[over] = move + 1  # ended games are played on, from an empty board, and not counted
    return (result == 1).sum(), (result == 0).sum(), (result == -1).sum()


def test_perfect_tic_tac_toe_never_loses():
    assert play(PerfectTicTacToe(0), PerfectTicTacToe(1), TIC_TAC_TOE, 30) == (0, 30, 0)
    wins, _, losses = play(PerfectTicTacToe(0), RandomPlayer(1), TIC_TAC_TOE, 60)
    assert losses == 0 and wins > 50
    wins, _, losses = play(RandomPlayer(1), PerfectTicTacToe(0), TIC_TAC_TOE, 60)
    assert wins == 0 and losses > 40


def test_alpha_beta_wins_at_once_and_stops_a_win():
    boards = Boards(CONNECT_FOUR, 1)
    for column in (0, 6, 1, 6, 2, 5):  # X has 0, 1, 2 at the bottom and is to move
        boards.step(np.array([column]))
    assert AlphaBeta(1)(boards) == [3]
    boards.step(np.array([4]))  # X misses it; O must now stop 3
    assert AlphaBeta(2)(boards) == [3]


def test_deeper_search_beats_random_and_shallower_play():
    assert play(AlphaBeta(4, 0), RandomPlayer(1), CONNECT_FOUR, 6)[0] == 6
    wins, _, losses = play(AlphaBeta(4, 0), AlphaBeta(1, 1), CONNECT_FOUR, 8)
    assert wins > losses


def test_an_illegal_move_names_game_and_legal_moves():
    boards = Boards(TIC_TAC_TOE, 2)
    boards.step(np.array([4, 0]))
    with pytest.raises(ValueError, match=r'tic_tac_toe: game 1: action 0 is not legal; legal are \[1, 2'):
        boards.step(np.array([3, 0]))
    with pytest.raises(ValueError, match='action 7'):
        Boards(CONNECT_FOUR, 1).step(np.array([7]))


def test_a_game_as_text():
    boards = Boards(CONNECT_FOUR, 1)
    for column in (3, 3, 2):
        boards.step(np.array([column]))
    assert boards.picture().splitlines()[-3:] == ['. . . O . . .', '. . X X . . .', '0 1 2 3 4 5 6']
    boards = Boards(TIC_TAC_TOE, 1)
    boards.step(np.array([1]))
    assert boards.picture().splitlines() == ['0 3 6', 'X 4 7', '2 5 8']


def test_landing_cells_are_where_the_stones_will_be():
    for rules in (CONNECT_FOUR, TIC_TAC_TOE):
        boards, rng = Boards(rules, 50), np.random.default_rng(0)
        for _ in range(4):
            landing, legal = boards.landing(), boards.legal()
            assert (landing.sum((1, 2)) == legal.sum(1)).all()
            before = boards.mine | boards.other
            boards.step((rng.random(legal.shape) * legal).argmax(1))
            put = (before ^ (boards.mine | boards.other)).reshape(landing.shape)
            assert (landing[put] == 1).all() and put.sum() == 50


def test_games_may_begin_with_moves_by_chance_of_which_none_wins():
    game = ConnectFour({'random_moves': 6, 'show_legal': True, 'flatten_obs': False}, 700)
    rows = np.arange(700)
    game.begin(rows, [np.random.default_rng(k) for k in range(700)])
    assert (np.bincount(game.boards.moves) > 60).all() and game.boards.moves.max() == 6
    assert len(np.unique(np.concatenate([game.boards.mine, game.boards.other], 1), axis=0)) > 400
    seen = game.view(rows, game.boards.moves % 2)
    assert seen['observation'].shape == (700, *game.seen_shape) == (700, 3, 6, 7)
    assert (seen['observation'][:, 2].any(1) == seen['action_mask']).all()
    cfg = {'random_moves': 6, 'evaluator_random_moves': 2, 'evaluator_env_num': 1}
    assert ConnectFour.create_evaluator_env_cfg(cfg)[0]['random_moves'] == 2
    with pytest.raises(ConfigError, match=r'env\.random_moves: got 7, must be at most 6'):
        ConnectFour({'random_moves': 7})
