"""Players by rule: random, perfect tic-tac-toe, connect four by alpha-beta search."""

from __future__ import annotations

from functools import cache

import numpy as np

from app_zoo.board.envs.boards import CONNECT_FOUR, TIC_TAC_TOE, Boards, Rules

_WIN = 1_000_000


class RandomPlayer:
    """A legal move, all of them equally likely."""

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        self._generator = np.random.default_rng(seed)

    def __call__(self, boards: Boards) -> np.ndarray:
        """One action a game."""
        legal = boards.legal()
        return (self._generator.random(legal.shape) * legal).argmax(1)


class PerfectTicTacToe:
    """
    Overview:
        Never loses: searches the whole game. Among equally good moves it draws one, so that games differ.
    """

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        self._generator = np.random.default_rng(seed)

    def __call__(self, boards: Boards) -> np.ndarray:
        """One action a game."""
        if boards.rules != TIC_TAC_TOE:
            raise ValueError(f'PerfectTicTacToe does not play {boards.rules.name}')
        order, actions = boards._order, []
        for mine, other in zip(_bits(boards.mine), _bits(boards.other)):
            values = {a: -_value(other, mine | 1 << cell) for a, cell in _free(mine | other, order)}
            best = max(values.values())
            actions.append(self._generator.choice([a for a, value in values.items() if value == best]))
        return np.array(actions)


def _bits(stones: np.ndarray) -> list[int]:
    return [int(b) for b in (stones * (1 << np.arange(stones.shape[1], dtype=np.int64))).sum(1)]


def _free(taken: int, order: np.ndarray) -> list[tuple[int, int]]:
    return [(action, int(cell)) for action, cell in enumerate(order) if not taken >> int(cell) & 1]


_LINES = [sum(1 << int(cell) for cell in line) for line in TIC_TAC_TOE.lines()]


@cache
def _value(mine: int, other: int) -> int:
    """1, 0 or -1 for the side that is to move with the stones ``mine``."""
    if any(other & line == line for line in _LINES):
        return -1
    free = [cell for cell in range(9) if not (mine | other) >> cell & 1]
    return max((-_value(other, mine | 1 << cell) for cell in free), default=0)


def _mask(line: np.ndarray) -> int:
    """A line of cells (row by row from the top) as bits, seven a column from the bottom."""
    return sum(1 << (int(cell) % 7 * 7 + 5 - int(cell) // 7) for cell in line)


class AlphaBeta:
    """
    Overview:
        Connect four by search to a depth; leaves are judged by open lines. Equal moves are drawn, the middle is tried
        first. A board is two numbers with seven bits a column, in which lines are found by shifts.
    Arguments:
        - depth (:obj:`int`): half-moves
    """

    _ORDER = (3, 2, 4, 1, 5, 0, 6)
    _lines = [_mask(line) for line in CONNECT_FOUR.lines()]

    def __init__(self, depth: int = 4, seed: int | np.random.Generator | None = None) -> None:
        if depth < 1:
            raise ValueError(f'AlphaBeta: depth must be at least 1, got {depth}')
        self._depth, self._generator = depth, np.random.default_rng(seed)

    def __call__(self, boards: Boards) -> np.ndarray:
        """One action a game."""
        if boards.rules != CONNECT_FOUR:
            raise ValueError(f'AlphaBeta does not play {boards.rules.name}')
        return np.array([self._choose(*_columns(boards, game)) for game in range(boards.num)])

    def _choose(self, mine: int, other: int, heights: list[int]) -> int:
        values = {}
        for column in self._ORDER:
            if heights[column] < 6:
                values[column] = self._after(mine, other, heights, column, self._depth, -_WIN * 2, _WIN * 2)
        best = max(values.values())
        return int(self._generator.choice([column for column, value in values.items() if value == best]))

    def _after(self, mine: int, other: int, heights: list[int], column: int, depth: int, low: int, high: int) -> int:
        """The value of a move for its mover."""
        stone = mine | 1 << (column * 7 + heights[column])
        if _has_line(stone):
            return _WIN + depth
        heights[column] += 1
        value = -self._search(other, stone, heights, depth - 1, -high, -low)
        heights[column] -= 1
        return value

    def _search(self, mine: int, other: int, heights: list[int], depth: int, low: int, high: int) -> int:
        if sum(heights) == 42:
            return 0
        if depth == 0:
            return self._judge(mine, other)
        best = -_WIN * 2
        for column in self._ORDER:
            if heights[column] < 6:
                best = max(best, self._after(mine, other, heights, column, depth, max(low, best), high))
                if best >= high:
                    break
        return best

    def _judge(self, mine: int, other: int) -> int:
        value = 0
        for line in self._lines:
            own, theirs = mine & line, other & line
            if own and not theirs:
                value += own.bit_count() ** 2
            elif theirs and not own:
                value -= theirs.bit_count() ** 2
        return value


def _columns(boards: Boards, game: int) -> tuple[int, int, list[int]]:
    sides = [_mask(np.flatnonzero(stones[game])) for stones in (boards.mine, boards.other)]
    taken = (boards.mine | boards.other)[game].reshape(6, 7)
    return sides[0], sides[1], taken.sum(0).tolist()


def _has_line(stones: int) -> bool:
    for shift in (1, 7, 6, 8):
        pairs = stones & stones >> shift
        if pairs & pairs >> 2 * shift:
            return True
    return False


def rules_of(name: str) -> Rules:
    """The rules of a game by its name; ValueError names the known ones."""
    known = {one.name: one for one in (TIC_TAC_TOE, CONNECT_FOUR)}
    if name not in known:
        raise ValueError(f'unknown board game {name!r}; known are {", ".join(known)}')
    return known[name]
