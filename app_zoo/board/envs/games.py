"""Tic-tac-toe and connect four as games of two sides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from app_zoo.board.envs.boards import CONNECT_FOUR, TIC_TAC_TOE, Boards, Rules
from app_zoo.board.envs.players import AlphaBeta, PerfectTicTacToe
from nervex.envs import TwoSidedEnv
from nervex.utils.declare import setting, settings


def by_board(player: Callable[..., Any], game: BoardGame, rows: np.ndarray, sides: np.ndarray, rng: Any) -> np.ndarray:
    """A player that looks at boards, as one of a game of two sides."""
    return player(seed=rng)(game.boards.of(rows))


class BoardGame(TwoSidedEnv):
    """
    Overview:
        What both games share. A side sees its own stones and the other's; 1 for the winner, -1 for the loser.
    """

    config = settings(flatten_obs=setting(True, 'bool', 'boards as vectors; False: as images of two channels'))
    rules: Rules
    state_constants = ('seen_shape', 'action_num')

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        self.boards = Boards(self.rules, num)
        cells = self.rules.rows * self.rules.columns
        self.action_num, self.limit = self.rules.actions, cells + 1
        self.seen_shape = (2 * cells,) if self._cfg.flatten_obs else (2, self.rules.rows, self.rules.columns)

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        self.boards.reset(which)

    def move(self, rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mover, place = self.boards.moves[rows] % 2, np.arange(len(rows))
        won, full = self.boards.step(actions[place, mover], None if len(rows) == self.num else rows)
        rewards = np.zeros((len(rows), 2), np.float32)
        rewards[place, mover], rewards[place, 1 - mover] = won, -won.astype(np.float32)
        return rewards, won | full

    def turns(self) -> np.ndarray:
        return np.arange(2) == (self.boards.moves % 2)[:, None]

    def view(self, rows: np.ndarray, sides: np.ndarray) -> dict[str, np.ndarray]:
        legal = self.boards.legal(rows).astype(np.float32)
        legal[~legal.any(1)] = 1  # a full board
        seen = self.boards.obs(rows, self.boards.moves[rows] % 2 != sides)
        return {'observation': seen.reshape(len(rows), *self.seen_shape), 'action_mask': legal}

    def picture(self, row: int = 0) -> str:
        return self.boards.picture(row)


class TicTacToe(BoardGame):
    """Tic-tac-toe; ``opponent`` may be 'random' or 'perfect'."""

    config = settings()
    rules = TIC_TAC_TOE
    players = {**TwoSidedEnv.players, 'perfect': partial(by_board, PerfectTicTacToe)}


class ConnectFour(BoardGame):
    """Connect four; ``opponent`` may be 'random' or a search to a depth, 'alpha_beta_1' to 'alpha_beta_8'."""

    config = settings()
    rules = CONNECT_FOUR
    players = {
        **TwoSidedEnv.players,
        **{f'alpha_beta_{n}': partial(by_board, partial(AlphaBeta, n)) for n in range(1, 9)},
    }
