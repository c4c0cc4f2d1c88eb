"""Matchmaking: whom to play, by win rates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nervex.utils import unknown_name

WEIGHTINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    'squared': lambda win_rates: (1.0 - win_rates) ** 2,
    'variance': lambda win_rates: win_rates * (1.0 - win_rates),
}


def pfsp(win_rates: np.ndarray, weighting: str = 'squared') -> np.ndarray:
    """
    Overview:
        Prioritized fictitious self-play (Vinyals et al. 2019): how likely each opponent is to be met. ``squared`` seeks
        those that win most, ``variance`` those of equal strength. If every weight is zero (all games are won, say), all
        opponents are equally likely.
    Arguments:
        - win_rates (:obj:`np.ndarray`): of the own player against each opponent, in [0, 1]
        - weighting (:obj:`str`): 'squared' for (1 - x)^2, 'variance' for x (1 - x)
    Returns:
        - probabilities (:obj:`np.ndarray`): they sum to 1
    Shapes:
        - win_rates, probabilities: :math:`(N, )`, N >= 1
    """
    if weighting not in WEIGHTINGS:
        raise ValueError(unknown_name('pfsp weighting', weighting, WEIGHTINGS))
    weights = WEIGHTINGS[weighting](_checked(win_rates))
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1.0 / len(weights))


def uniform(win_rates: np.ndarray) -> np.ndarray:
    """Every opponent is equally likely: probabilities of shape (N, )."""
    rates = _checked(win_rates)
    return np.full(len(rates), 1.0 / len(rates))


def draw(probabilities: np.ndarray, generator: np.random.Generator) -> int:
    """A position, drawn with these probabilities."""
    cumulated = probabilities.cumsum()
    found = int(cumulated.searchsorted(generator.random() * cumulated[-1], side='right'))
    return min(found, len(cumulated) - 1)


def _checked(win_rates: np.ndarray) -> np.ndarray:
    rates = np.asarray(win_rates, np.float64)
    if rates.ndim != 1 or not len(rates):
        raise ValueError(f'win rates are one number an opponent, at least one; got shape {rates.shape}')
    if not (rates.min() >= 0 and rates.max() <= 1):  # NaN is refused, too
        raise ValueError(f'win rates lie in [0, 1]; got {rates.min()} to {rates.max()}')
    return rates
