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
from nervex.utils.errors import ConfigError


def by_board(player: Callable[..., Any], game: BoardGame, rows: np.ndarray, sides: np.ndarray, rng: Any) -> np.ndarray:
    """A player that looks at boards, as one of a game of two sides."""
    return player(seed=rng)(game.boards.of(rows))


class BoardGame(TwoSidedEnv):
    """
    Overview:
        What both games share. A side sees its own stones and the other's; 1 for the winner, -1 for the loser.
    """

    config = settings(
        flatten_obs=setting(True, 'bool', 'boards as vectors; False: as images of two channels'),
        show_legal=setting(False, 'bool', 'a third channel: the cells that a stone may be put on'),
        random_moves=setting(0, 'int >= 0', 'at most so many moves by chance begin a game'),
        evaluator_random_moves=setting(None, 'int >= 0 | None', 'the same in evaluations; None: random_moves'),
    )
    rules: Rules
    state_constants = ('seen_shape', 'action_num')

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        self.boards = Boards(self.rules, num)
        cells = self.rules.rows * self.rules.columns
        self.action_num, self.limit = self.rules.actions, cells + 1
        planes = 2 + self._cfg.show_legal
        self.seen_shape = (planes * cells,) if self._cfg.flatten_obs else (planes, self.rules.rows, self.rules.columns)
        if self._cfg.random_moves > (most := 2 * self.rules.line - 2):
            text = f'got {self._cfg.random_moves}, must be at most {most}: then nobody can have won'
            raise ConfigError([f'env.random_moves: {text}'])

    @classmethod
    def create_evaluator_env_cfg(cls, cfg: dict) -> list[dict]:
        moves = cls.complete_cfg(cfg).evaluator_random_moves
        return [
            one if moves is None else {**one, 'random_moves': moves} for one in super().create_evaluator_env_cfg(cfg)
        ]

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        self.boards.reset(which)
        if (most := self._cfg.random_moves) and len(which):
            drawn = np.stack([generators[row].random(most + 1) for row in which])
            count = (drawn[:, 0] * (most + 1)).astype(int)
            for k in range(most):
                rows = which[count > k]
                legal = self.boards.legal(rows)
                nth = (drawn[count > k, k + 1] * legal.sum(1)).astype(int)
                self.boards.step((legal.cumsum(1) > nth[:, None]).argmax(1), rows)

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
        if self._cfg.show_legal:
            seen = np.concatenate([seen, self.boards.landing(rows)[:, None]], 1)
        return {'observation': seen.reshape(len(rows), *self.seen_shape), 'action_mask': legal}

    def picture(self, row: int = 0) -> str:
        return self.boards.picture(row)


class TicTacToe(BoardGame):
    """Tic-tac-toe; ``opponent`` may be 'random' or 'perfect'."""

    config = settings()
    rules = TIC_TAC_TOE
    search_rules = 'app_zoo.board.envs.search:TIC_TAC_TOE_RULES'
    players = {**TwoSidedEnv.players, 'perfect': partial(by_board, PerfectTicTacToe)}


class ConnectFour(BoardGame):
    """Connect four; ``opponent`` may be 'random' or a search to a depth, 'alpha_beta_1' to 'alpha_beta_8'."""

    config = settings()
    rules = CONNECT_FOUR
    search_rules = 'app_zoo.board.envs.search:CONNECT_FOUR_RULES'
    players = {
        **TwoSidedEnv.players,
        **{f'alpha_beta_{n}': partial(by_board, partial(AlphaBeta, n)) for n in range(1, 9)},
    }
