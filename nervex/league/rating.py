"""Ratings: how strong players are, from who beat whom."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from nervex.utils.part_state import HasState

_SCALE = 400.0 / math.log(10.0)  # Elo points of a factor e in the odds


class Elo(HasState):
    """
    Overview:
        Elo ratings that follow the games one by one (Elo 1978): a win moves both ratings by ``k`` times what was not
        expected of it.
    Arguments:
        - k (:obj:`float`): points that a certain loser wins at most
        - start (:obj:`float`): rating of a new player
    """

    resume_parts = ('ratings',)

    def __init__(self, k: float = 16.0, start: float = 1200.0) -> None:
        self.k, self.start = k, start
        self.ratings: dict[str, float] = {}

    def expected(self, home: str, away: str) -> float:
        """The score that home is expected to make against away, in (0, 1)."""
        gap = self._of(away) - self._of(home)
        return 1.0 / (1.0 + 10.0 ** (gap / 400.0))

    def update(self, home: str, away: str, score: float) -> None:
        """One game: ``score`` of home is 1 for a win, 0.5 for a draw, 0 for a loss."""
        if score not in (0, 0.5, 1):
            raise ValueError(f'score of a game: 1, 0.5 or 0, got {score}')
        change = self.k * (score - self.expected(home, away))
        self.ratings[home], self.ratings[away] = self._of(home) + change, self._of(away) - change

    def _of(self, player_id: str) -> float:
        return self.ratings.get(player_id, self.start)

    def copy(self, player_id: str, new_id: str) -> None:
        """A snapshot begins with the rating of the player that it was taken of."""
        self.ratings[new_id] = self._of(player_id)


class Skill(NamedTuple):
    """A belief about a player's strength: normal with this mean and deviation."""

    mu: float
    sigma: float


class TrueSkill:
    """
    Overview:
        TrueSkill for two players (Herbrich, Minka and Graepel 2006): a belief that gets narrower with every game.
        ``conservative`` is the strength that a player has almost surely.
    Arguments:
        - mu, sigma (:obj:`float`): belief about a new player
        - beta (:obj:`float`): deviation of the performance in one game
        - tau (:obj:`float`): deviation that is added before each game, since players change
        - draw_probability (:obj:`float`): of equal players, in [0, 1)
    """

    def __init__(
        self,
        mu: float = 25.0,
        sigma: float = 25.0 / 3,
        beta: float = 25.0 / 6,
        tau: float = 25.0 / 300,
        draw_probability: float = 0.1,
    ) -> None:
        self._new, self._beta, self._tau = Skill(mu, sigma), beta, tau
        self._margin = NormalDist().inv_cdf((draw_probability + 1) / 2) * math.sqrt(2) * beta
        self.skills: dict[str, Skill] = {}

    def update(self, home: str, away: str, score: float) -> None:
        """One game: ``score`` of home is 1 for a win, 0.5 for a draw, 0 for a loss."""
        if score not in (0, 0.5, 1):
            raise ValueError(f'score of a game: 1, 0.5 or 0, got {score}')
        if score == 0:
            return self.update(away, home, 1)
        a, b = self.skills.get(home, self._new), self.skills.get(away, self._new)
        variance_a, variance_b = a.sigma**2 + self._tau**2, b.sigma**2 + self._tau**2
        spread = math.sqrt(2 * self._beta**2 + variance_a + variance_b)
        gap, margin = (a.mu - b.mu) / spread, self._margin / spread
        shift, shrink = _won(gap - margin) if score == 1 else _drawn(gap, margin)
        self.skills[home] = _moved(a.mu, variance_a, spread, shift, shrink)
        self.skills[away] = _moved(b.mu, variance_b, spread, -shift, shrink)
        return None

    def conservative(self, player_id: str) -> float:
        """Mean less three deviations."""
        skill = self.skills.get(player_id, self._new)
        return skill.mu - 3 * skill.sigma

    def copy(self, player_id: str, new_id: str) -> None:
        """A snapshot begins with the belief about the player that it was taken of."""
        self.skills[new_id] = self.skills.get(player_id, self._new)

    def state_dict(self) -> dict[str, Any]:
        """All beliefs."""
        return {'skills': {name: list(skill) for name, skill in self.skills.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self.skills = {name: Skill(*skill) for name, skill in state['skills'].items()}


def _moved(mu: float, variance: float, spread: float, shift: float, shrink: float) -> Skill:
    left = max(1 - variance / spread**2 * shrink, 1e-9)
    return Skill(mu + variance / spread * shift, math.sqrt(variance * left))


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _mass(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _won(x: float) -> tuple[float, float]:
    """Moments of a normal variable that is known to be above -x."""
    below = _mass(x)
    shift = _density(x) / below if below > 1e-12 else -x
    return shift, shift * (shift + x)


def _drawn(gap: float, margin: float) -> tuple[float, float]:
    """Moments of a normal variable around ``gap`` that is known to lie within the margin."""
    low, high = -margin - gap, margin - gap
    inside = _mass(high) - _mass(low)
    if inside < 1e-12:
        return (-gap - margin if gap < 0 else -gap + margin), 1.0
    shift = (_density(low) - _density(high)) / inside
    return shift, shift**2 + (high * _density(high) - low * _density(low)) / inside


def fit_elo(scores: np.ndarray, games: np.ndarray, steps: int = 10_000) -> np.ndarray:
    """
    Overview:
        The Elo ratings under which a whole table of games is most likely (Bradley and Terry 1952, fitted by Hunter's
        2004 algorithm), a draw being half a win. One virtual draw of each pair that met keeps ratings finite.
    Shapes:
        - scores (:obj:`np.ndarray`): :math:`(N, N)`, points of row against column: wins and half the draws
        - games (:obj:`np.ndarray`): :math:`(N, N)` symmetric, games of each pair
        - ratings (:obj:`np.ndarray`): :math:`(N, )` with mean 0
    """
    met = (games > 0) & ~np.eye(len(games), dtype=bool)
    played = np.where(met, games + 1.0, 0.0)
    points = np.where(met, scores + 0.5, 0.0).sum(1)
    strength = np.ones(len(games))
    for _ in range(steps):
        updated = points / np.maximum((played / (strength[:, None] + strength)).sum(1), 1e-300)
        updated = np.where(points > 0, updated, strength)
        updated /= np.exp(np.log(updated).mean())
        done = np.abs(np.log(updated / strength)).max() < 1e-10
        strength = updated
        if done:
            break
    return np.log(strength) * _SCALE


def elo_interval(
    wins: np.ndarray, draws: np.ndarray, generator: np.random.Generator, rounds: int = 200, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """
    Overview:
        Confidence intervals of ``fit_elo`` by drawing the games of every pair again (bootstrap).
    Arguments:
        - wins (:obj:`np.ndarray`): (N, N), games that row won against column
        - draws (:obj:`np.ndarray`): (N, N) symmetric
    Returns:
        - low, high (:obj:`np.ndarray`): (N, ) each
    """
    games = (wins + wins.T + draws).astype(int)
    chance = np.stack([wins, draws, wins.T], -1) / np.maximum(games, 1)[..., None]
    upper = np.triu_indices(len(games), 1)
    fits = []
    for _ in range(rounds):
        scores = np.zeros(games.shape)
        for i, j in zip(*upper):
            if games[i, j]:
                won, drawn, lost = generator.multinomial(games[i, j], chance[i, j])
                scores[i, j], scores[j, i] = won + drawn / 2, lost + drawn / 2
        fits.append(fit_elo(scores, games, steps=200))
    tail = (1 - level) / 2
    return np.quantile(fits, tail, axis=0), np.quantile(fits, 1 - tail, axis=0)
