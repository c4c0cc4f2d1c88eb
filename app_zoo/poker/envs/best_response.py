"""
Exact best responses in small games of poker: the game is played for all deals at once along every line of bets.

A strategy is a function (observations (n, *), legal (n, 3)) -> probabilities (n, 3).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np

from app_zoo.poker.envs.poker import Poker

Strategy = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: by observation: probabilities, and how likely it is that one's own actions lead there
Table = dict[bytes, tuple[np.ndarray, float]]


def exploitability(game: type[Poker], strategy: Strategy) -> float:
    """What best responses win of a strategy in a game, the mean over both sides; 0 in an equilibrium."""
    return float(np.mean([_answer(_start(game), strategy, side, np.ones(1)).mean() for side in (0, 1)]))


def _start(game: type[Poker]) -> Poker:
    deals = game.all_deals()
    start = game({}, len(deals))
    start.deal = deals
    return start


def _after(game: Poker, action: int) -> tuple[Poker, np.ndarray, bool]:
    """The games after an action of the side to move, what was paid, and whether they are over: for all deals alike."""
    game = copy.deepcopy(game)
    paid, over = game.move(np.arange(game.num), np.full((game.num, 2), action))
    return game, paid, bool(over[0])


def _answer(game: Poker, strategy: Strategy, side: int, reach: np.ndarray) -> np.ndarray:
    """What a side that knows the other's strategy wins, for each deal; ``reach``: how likely the other comes here."""
    rows, mover = np.arange(game.num), int(game.mover[0])
    seen = game.view(rows, np.full(game.num, mover))
    actions = seen['action_mask'][0].nonzero()[0]
    chance = np.ones((game.num, 3)) if mover == side else strategy(seen['observation'], seen['action_mask'])
    values = []
    for action in actions.tolist():
        following, paid, over = _after(game, action)
        comes = reach * chance[:, action]
        values.append(paid[:, side] if over else _answer(following, strategy, side, comes))
    found = np.stack(values)
    if mover != side:
        return (found * chance[:, actions].T).sum(0)
    _, same = np.unique(seen['observation'], axis=0, return_inverse=True)  # deals that look alike to this side
    totals = np.stack([np.bincount(same.ravel(), reach * value) for value in found])
    return found[totals.argmax(0)[same.ravel()], rows]


def tabulate(game: type[Poker], strategy: Strategy) -> Table:
    """A strategy at all observations of both sides."""
    found: Table = {}

    def visit(here: Poker, reach: np.ndarray) -> None:
        rows, mover = np.arange(here.num), int(here.mover[0])
        seen = here.view(rows, np.full(here.num, mover))
        chance = strategy(seen['observation'], seen['action_mask'])
        for row in rows:
            found[seen['observation'][row].tobytes()] = chance[row], float(reach[row, mover])
        for action in seen['action_mask'][0].nonzero()[0].tolist():
            following, _, over = _after(here, action)
            if not over:
                further = reach.copy()
                further[:, mover] *= chance[:, action]
                visit(following, further)

    start = _start(game)
    visit(start, np.ones((start.num, 2)))
    return found


def average(tables: Sequence[Table]) -> Strategy:
    """The strategy of who draws one of these before a game, and keeps to it."""
    mixed = {}
    for key in tables[0]:
        chances, reach = np.array([table[key][0] for table in tables]), np.array([table[key][1] for table in tables])
        mixed[key] = (chances * reach[:, None]).sum(0) / reach.sum() if reach.sum() else chances.mean(0)
    return lambda seen, legal: np.stack([mixed[row.tobytes()] for row in np.ascontiguousarray(seen)])
