"""
Many games of tic-tac-toe or connect four at once, in NumPy.

A board is two rows of bits a game: the stones of the side to move and those of the other; after every move the two
change places, so that a player always looks at its own stones. An action is a cell (tic-tac-toe; columns first, as in
PettingZoo) or a column (connect four). A game ends with a line of the mover's, or as a draw when the board is full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
        reset, legal, step, obs
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

    def legal(self) -> np.ndarray:
        """Which actions the side to move has: (num, actions) bool."""
        taken = self.mine | self.other
        return ~taken[:, : self.rules.columns] if self.rules.falls else ~taken[:, self._order]

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        Overview:
            One move in every game, by its side to move; then the sides change.
        Arguments:
            - actions (:obj:`np.ndarray`): (num, ) ints; an illegal one raises ValueError that names game and action
        Returns:
            - won (:obj:`np.ndarray`): (num, ) bool, whether the mover has won
            - full (:obj:`np.ndarray`): (num, ) bool, whether the board is full without a winner: a draw
        """
        cell = self._cell(np.asarray(actions))
        self.mine[self._all, cell] = True
        won = self.mine[self._all[:, None, None], self._through[cell]].all(2).any(1)
        self.mine, self.other = self.other, self.mine
        self.moves += 1
        return won, ~won & (self.moves == self.mine.shape[1])

    def _cell(self, actions: np.ndarray) -> np.ndarray:
        inside = (actions >= 0) & (actions < self.rules.actions)
        known = np.where(inside, actions, 0)
        if self.rules.falls:
            columns = self.rules.columns
            taken = (self.mine | self.other).reshape(self.num, self.rules.rows, columns)
            row = self.rules.rows - 1 - taken[self._all, :, known].sum(1)
            cell, free = row * columns + known, row >= 0
        else:
            cell = self._order[known]
            free = ~(self.mine | self.other)[self._all, cell]
        if not (inside & free).all():
            game = int(np.flatnonzero(~(inside & free))[0])
            legal = np.flatnonzero(self.legal()[game]).tolist()
            raise ValueError(f'{self.rules.name}: game {game}: action {actions[game]} is not legal; legal are {legal}')
        return cell

    def obs(self) -> np.ndarray:
        """What the side to move sees: (num, 2, rows, columns) float32, its own stones and the other's."""
        shape = (self.num, self.rules.rows, self.rules.columns)
        return np.stack([self.mine.reshape(shape), self.other.reshape(shape)], 1).astype(np.float32)

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
