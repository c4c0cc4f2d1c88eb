"""
Many games of tic-tac-toe or connect four at once, in NumPy.

A board is two rows of bits a game: the stones of the side to move and those of the other; after every move the two
change places, so that a player always looks at its own stones. An action is a cell (tic-tac-toe; columns first, as in
PettingZoo) or a column (connect four). A game ends with a line of the mover's, or as a draw when the board is full.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from nervex.envs.env.plain_state import encode, set_attributes


@dataclass(frozen=True)
class Rules:
    """Sizes of a game; ``falls``: an action is a column and the stone drops to the lowest free cell."""

    name: str
    rows: int
    columns: int
    line: int
    falls: bool

    @property
    def actions(self) -> int:
        """How many actions there are, legal or not."""
        return self.columns if self.falls else self.rows * self.columns

    def lines(self) -> np.ndarray:
        """Every winning line as cell numbers (row * columns + column): (lines, line)."""
        found = []
        for row in range(self.rows):
            for column in range(self.columns):
                for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                    cells = [(row + k * down, column + k * right) for k in range(self.line)]
                    if all(0 <= r < self.rows and 0 <= c < self.columns for r, c in cells):
                        found.append([r * self.columns + c for r, c in cells])
        return np.array(found)


TIC_TAC_TOE = Rules('tic_tac_toe', 3, 3, 3, falls=False)
CONNECT_FOUR = Rules('connect_four', 6, 7, 4, falls=True)


class Boards:
    """
    Overview:
        ``num`` games of one kind. ``mine`` and ``other`` (num, cells) are the stones of the side to move and of its
        opponent, row by row from the top; ``moves`` (num, ) counts moves, so that ``moves % 2`` is the side to move.
    Interfaces:
        reset, of, at, legal, step, obs, picture, state_dict, load_state_dict
    """

    def __init__(self, rules: Rules, num: int) -> None:
        self.rules, self.num = rules, num
        cells = rules.rows * rules.columns
        self.mine, self.other = np.zeros((num, cells), bool), np.zeros((num, cells), bool)
        self.moves = np.zeros(num, np.int64)
        lines = rules.lines()
        self._line_num = len(lines)
        through = [np.flatnonzero((lines == cell).any(1)) for cell in range(cells)]
        most = max(len(own) for own in through)
        # the lines through each cell, padded by repeating the first
        self._through = np.array([lines[np.resize(own, most)] for own in through])
        self._all = np.arange(num)
        self._order = self._action_cells()

    def _action_cells(self) -> np.ndarray:
        """Tic-tac-toe: the cell of each action."""
        rows, columns = self.rules.rows, self.rules.columns
        return np.arange(rows * columns).reshape(rows, columns).T.ravel()

    def reset(self, which: np.ndarray | None = None) -> None:
        """Empty the boards ``which`` (ids), or all."""
        which = self._all if which is None else which
        self.mine[which] = self.other[which] = False
        self.moves[which] = 0

    def of(self, which: np.ndarray) -> Boards:
        """A copy of the games ``which`` (ids)."""
        return self.at(self.mine[which], self.other[which])

    def at(self, mine: np.ndarray, other: np.ndarray) -> Boards:
        """Games of the same kind with these stones of the side to move and of the other: bool (games, cells)."""
        part = copy(self)
        part.num, part._all = len(mine), np.arange(len(mine))
        part.mine, part.other, part.moves = mine.copy(), other.copy(), mine.sum(1) + other.sum(1)
        return part

    def legal(self, which: np.ndarray | None = None) -> np.ndarray:
        """Which actions the side to move has: (games, actions) bool."""
        rows = self._all if which is None else which
        taken = self.mine[rows] | self.other[rows]
        return ~taken[:, : self.rules.columns] if self.rules.falls else ~taken[:, self._order]

    def landing(self, which: np.ndarray | None = None) -> np.ndarray:
        """The cells that a stone may be put on: (games, rows, columns) float32."""
        rows = self._all if which is None else which
        free = ~(self.mine[rows] | self.other[rows]).reshape(len(rows), self.rules.rows, self.rules.columns)
        if self.rules.falls:
            free[:, :-1] &= ~free[:, 1:]
        return free.astype(np.float32)

    def step(self, actions: np.ndarray, which: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """
        Overview:
            One move in the games ``which`` (ids), or all, by the side to move; then the sides change.
        Arguments:
            - actions (:obj:`np.ndarray`): an int a game; an illegal one raises ValueError that names game and action
        Returns:
            - won (:obj:`np.ndarray`): bool, whether the mover has won
            - full (:obj:`np.ndarray`): bool, whether the board is full without a winner: a draw
        """
        rows = self._all if which is None else which
        cell = self._cell(np.asarray(actions), rows)
        self.mine[rows, cell] = True
        won = self.mine[rows[:, None, None], self._through[cell]].all(2).any(1)
        if which is None:
            self.mine, self.other = self.other, self.mine
        else:
            self.mine[rows], self.other[rows] = self.other[rows], self.mine[rows]
        self.moves[rows] += 1
        return won, ~won & (self.moves[rows] == self.mine.shape[1])

    def _cell(self, actions: np.ndarray, rows: np.ndarray) -> np.ndarray:
        inside = (actions >= 0) & (actions < self.rules.actions)
        known, taken = np.where(inside, actions, 0), self.mine[rows] | self.other[rows]
        place = np.arange(len(rows))
        if self.rules.falls:
            columns = self.rules.columns
            row = self.rules.rows - 1 - taken.reshape(len(rows), self.rules.rows, columns)[place, :, known].sum(1)
            cell, free = row * columns + known, row >= 0
        else:
            cell = self._order[known]
            free = ~taken[place, cell]
        if not (inside & free).all():
            k = int(np.flatnonzero(~(inside & free))[0])
            legal = np.flatnonzero(self.legal(rows)[k]).tolist()
            raise ValueError(f'{self.rules.name}: game {rows[k]}: action {actions[k]} is not legal; legal are {legal}')
        return cell

    def obs(self, which: np.ndarray | None = None, waiting: np.ndarray | bool = False) -> np.ndarray:
        """
        What the side to move (the other one, where ``waiting``) sees of the games ``which``, or all: (games, 2, rows,
        columns) float32, its own stones and the other's.
        """
        rows = self._all if which is None else which
        both = np.stack([self.mine[rows], self.other[rows]], 1, dtype=np.float32)
        turned = np.broadcast_to(waiting, len(rows))
        if turned.any():
            both[turned] = both[turned][:, ::-1]
        return both.reshape(len(rows), 2, self.rules.rows, self.rules.columns)

    def picture(self, game: int = 0) -> str:
        """A game as text: X moved first, O second; columns or cells that are free show their action."""
        first, second = (self.mine, self.other) if self.moves[game] % 2 == 0 else (self.other, self.mine)
        names = ['.'] * first.shape[1]
        if not self.rules.falls:
            for action, cell in enumerate(self._order):
                names[cell] = str(action)
        signs = ['X' if x else 'O' if o else free for x, o, free in zip(first[game], second[game], names)]
        width = self.rules.columns
        lines = [' '.join(signs[k : k + width]) for k in range(0, len(signs), width)]
        if self.rules.falls:
            lines.append(' '.join(str(k) for k in range(width)))
        return '\n'.join(lines)

    def state_dict(self) -> dict[str, np.ndarray]:
        """All games."""
        return {name: encode(getattr(self, name), set()) for name in ('mine', 'other', 'moves')}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        set_attributes(self, state)
