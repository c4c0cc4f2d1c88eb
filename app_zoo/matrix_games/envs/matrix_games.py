"""Rock-paper-scissors, plain or with other payoffs, and how much a strategy can be exploited."""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.envs import TwoSidedEnv
from nervex.utils.declare import setting, settings
from nervex.utils.errors import unknown_name

#: what the row side is paid, who plays rock, paper or scissors; the column side is paid the negative
PAYOFFS = {
    'plain': ((0, -1, 1), (1, 0, -1), (-1, 1, 0)),
    'biased': ((0, -1, 2), (1, 0, -1), (-2, 1, 0)),  # rock against scissors counts twice: 1/4, 1/2, 1/4 is even
}


def biased_player(game: Any, rows: np.ndarray, sides: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rock half of the time, paper and scissors a quarter each: paper beats it."""
    return rng.choice(3, len(rows), p=(0.5, 0.25, 0.25))


class RockPaperScissors(TwoSidedEnv):
    """
    Overview:
        ``rounds`` rounds of a symmetric matrix game; both sides choose at once. One sees what both have chosen in the
        round before, oneself first (one-hot; zeros in the first round).
    """

    config = settings(
        payoff=setting('plain', ' | '.join(map(repr, PAYOFFS)), 'which table'),
        rounds=setting(1, 'int >= 1', 'of a game'),
    )
    state_constants = ('payoffs', 'seen_shape')
    seen_shape, action_num = (6,), 3
    players = {**TwoSidedEnv.players, 'biased': biased_player}

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        if self._cfg.payoff not in PAYOFFS:
            raise ValueError(unknown_name('payoff table', self._cfg.payoff, PAYOFFS))
        self.payoffs = np.array(PAYOFFS[self._cfg.payoff], np.float32)
        self.limit = self._cfg.rounds + 1
        self._done, self._last = np.zeros(num, np.int64), np.zeros((num, 2, 3), np.float32)

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        self._done[which], self._last[which] = 0, 0

    def move(self, rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not ((actions >= 0) & (actions < 3)).all():
            raise ValueError(
                f'{self!r}: an action is 0, 1 or 2, got {actions[((actions < 0) | (actions > 2)).any(1)][0]}'
            )
        paid = self.payoffs[actions[:, 0], actions[:, 1]]
        self._last[rows] = np.eye(3, dtype=np.float32)[actions]
        self._done[rows] += 1
        return np.stack([paid, -paid], 1), self._done[rows] == self._cfg.rounds

    def turns(self) -> np.ndarray:
        return np.ones((self.num, 2), bool)

    def view(self, rows: np.ndarray, sides: np.ndarray) -> dict[str, np.ndarray]:
        both = self._last[rows]
        both[sides == 1] = both[sides == 1][:, ::-1]
        return {'observation': both.reshape(len(rows), 6), 'action_mask': np.ones((len(rows), 3), np.float32)}


def exploitability(strategy: np.ndarray, payoff: str = 'plain') -> float:
    """What the best answer wins a round against a mixed strategy (3, ); 0 for one that cannot be exploited."""
    return float((np.array(PAYOFFS[payoff]) @ np.asarray(strategy, np.float64)).max())
