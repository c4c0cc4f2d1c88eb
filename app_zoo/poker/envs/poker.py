"""Kuhn and Leduc poker: games of two sides with hidden cards."""

from __future__ import annotations

import itertools

import numpy as np

from nervex.envs import TwoSidedEnv
from nervex.utils.declare import settings

FOLD, CALL, RAISE = range(3)
LONGEST = 4  # bets of a round


class Poker(TwoSidedEnv):
    """
    Overview:
        Each side has a card and has paid one chip. In turn a side folds, calls (or checks), or raises; a round ends
        with a call. Between two rounds a card is shown to both. At the end whoever has the shown rank wins, else the
        higher card. One sees the own rank, the shown one, and what was bet (one-hot); the reward is in chips.
    Attributes:
        - ranks, copies (:obj:`int`): of the cards
        - bets (:obj:`tuple[int, ...]`): what a raise adds, for each round
        - raises (:obj:`int`): at most so many a round
    """

    config = settings()
    ranks, copies, raises = 3, 1, 1
    bets: tuple[int, ...] = (1,)
    action_num, limit = 3, 2 * LONGEST + 1
    state_constants = ('seen_shape',)

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        rounds = len(self.bets)
        self.seen_shape = (self.ranks * rounds + rounds * LONGEST * 2,)
        self.deal = np.zeros((num, 3), np.int64)  # the cards of both sides, and the one that is shown
        self.paid = np.ones((num, 2), np.int64)
        self.round, self.raised, self.said, self.mover = (np.zeros(num, np.int64) for _ in range(4))
        self.line = np.zeros((num, rounds, LONGEST, 2), np.float32)

    @classmethod
    def all_deals(cls) -> np.ndarray:
        """Every deal, all of them equally likely: (n, 3)."""
        return np.array(list(itertools.permutations(range(cls.ranks * cls.copies), 3)))

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        for row in which.tolist():
            self.deal[row] = generators[row].permutation(self.ranks * self.copies)[:3]
        self.paid[which] = 1
        for state in (self.round, self.raised, self.said, self.mover, self.line):
            state[which] = 0

    def legal(self, rows: np.ndarray) -> np.ndarray:
        """What the sides to move may do: (rows, 3) bool."""
        owes = self.paid[rows, 1 - self.mover[rows]] > self.paid[rows, self.mover[rows]]
        return np.stack([owes, np.ones(len(rows), bool), self.raised[rows] < self.raises], 1)

    def move(self, rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place, mover, now = np.arange(len(rows)), self.mover[rows], self.round[rows]
        action = actions[place, mover]
        known = (action >= 0) & (action < 3)
        if not (known & self.legal(rows)[place, np.where(known, action, 0)]).all():
            k = int((~(known & self.legal(rows)[place, np.where(known, action, 0)])).nonzero()[0][0])
            legal = self.legal(rows)[k].nonzero()[0].tolist()
            raise ValueError(f'{self!r}: game {rows[k]}: action {action[k]} is not legal; legal are {legal}')
        folds, calls, raises = (action == kind for kind in (FOLD, CALL, RAISE))
        self.line[rows[~folds], now[~folds], self.said[rows[~folds]], action[~folds] - CALL] = 1
        stake = self.paid[rows, 1 - mover] + raises * np.array(self.bets)[now]
        self.paid[rows, mover] = np.where(folds, self.paid[rows, mover], stake)
        self.raised[rows] += raises
        ends = calls & (self.said[rows] > 0)  # the round
        self.said[rows] += 1
        self.mover[rows] = 1 - mover
        last = now == len(self.bets) - 1
        on, over = rows[ends & ~last], folds | ends & last
        self.round[on] += 1
        self.raised[on] = self.said[on] = self.mover[on] = 0
        better = np.where(folds, 2 * mover - 1, self._compared(rows))  # 1: the first side's, -1: the second side's
        first = over * better * self.paid[rows].min(1)
        return np.stack([first, -first], 1).astype(np.float32), over

    def _compared(self, rows: np.ndarray) -> np.ndarray:
        rank = self.deal[rows] // self.copies
        strength = rank[:, :2] + self.ranks * (rank[:, :2] == rank[:, 2:]) * (len(self.bets) > 1)
        return np.sign(strength[:, 0] - strength[:, 1])

    def turns(self) -> np.ndarray:
        return np.arange(2) == self.mover[:, None]

    def view(self, rows: np.ndarray, sides: np.ndarray) -> dict[str, np.ndarray]:
        ranks, cards = np.eye(self.ranks, dtype=np.float32), self.deal[rows] // self.copies
        seen = [ranks[cards[np.arange(len(rows)), sides]], self.line[rows].reshape(len(rows), -1)]
        if len(self.bets) > 1:
            seen.append(ranks[cards[:, 2]] * (self.round[rows] > 0)[:, None])
        return {'observation': np.concatenate(seen, 1), 'action_mask': self.legal(rows).astype(np.float32)}


class KuhnPoker(Poker):
    """Three cards, one round, one raise of one chip (Kuhn 1950)."""

    config = settings()


class LeducPoker(Poker):
    """Six cards of three ranks, two rounds with at most two raises of two and four chips (Southey et al. 2005)."""

    config = settings()
    copies, raises, bets = 2, 2, (2, 4)
