"""Results of several runs in numbers that hold for few of them: means with bootstrap intervals, IQM, improvement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_RESAMPLES = 10_000
_COLUMNS = ('setting', 'n', 'mean', 'low', 'high', 'iqm', 'improvement')


def iqm(values: np.ndarray) -> np.ndarray:
    """
    Overview:
        The interquartile mean (Agarwal et al., 2021: Deep RL at the edge of the statistical precipice): without the
        lowest and the highest quarter, rounded down, so that of fewer than four values it is the mean.
    Shapes:
        - values (:obj:`np.ndarray`): :math:`(..., N)`
    """
    ordered, cut = np.sort(values, axis=-1), values.shape[-1] // 4
    return ordered[..., cut : values.shape[-1] - cut].mean(-1)


def bootstrap_interval(
    values: Sequence[float], statistic: Callable[[np.ndarray], np.ndarray] = lambda drawn: drawn.mean(-1)
) -> tuple[float, float]:
    """The 95 % interval of a statistic over the last axis, by the percentiles of resampled values; always the same."""
    x = np.asarray(values, float)
    drawn = x[np.random.default_rng(0).integers(len(x), size=(_RESAMPLES, len(x)))]
    low, high = np.percentile(statistic(drawn), (2.5, 97.5))
    return float(low), float(high)


def improvement(values: Sequence[float], over: Sequence[float]) -> float:
    """How probable it is that a run of ``values`` is better than one of ``over``; equal ones count by half."""
    x, y = np.asarray(values, float)[:, None], np.asarray(over, float)
    return float((x > y).mean() + (x == y).mean() / 2)


def shown_return(value: float) -> str:
    """A return to be read: with more digits where it is small."""
    return f'{value:,.{1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3}f}'


def comparison(finals: Sequence[tuple[str, Sequence[float]]]) -> list[dict[str, Any]]:
    """
    Overview:
        A row for each group of runs: how many, their mean with its interval, IQM, and the probability of improvement
        over the first group that has a result; None where there is no such number.
    Arguments:
        - finals (:obj:`Sequence`): the name of each group, and the final returns of its runs
    """
    first = next((values for _, values in finals if len(values)), [])
    rows = []
    for name, values in finals:
        row: dict[str, Any] = {'setting': name, 'n': len(values), 'mean': None, 'low': None, 'high': None, 'iqm': None}
        if len(values):
            row.update(mean=float(np.mean(values)), iqm=float(iqm(np.asarray(values, float))))
        if len(values) > 1:
            row['low'], row['high'] = bootstrap_interval(values)
        row['improvement'] = improvement(values, first) if len(values) and values is not first else None
        rows.append(row)
    return rows


def readable(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The rows of a comparison as a table for people, with its head; further columns as they are."""
    table = []
    for row in rows:
        mean, low, high, middle = (
            '' if row[k] is None else shown_return(row[k]) for k in ('mean', 'low', 'high', 'iqm')
        )
        better = '' if row['improvement'] is None else f'{row["improvement"]:.2f}'
        more = [str(value) for name, value in row.items() if name not in _COLUMNS]
        table.append([row['setting'], str(row['n']), mean, f'{low} to {high}' if low else '', middle, better, *more])
    head = ['setting', 'n', 'final mean', '95 % interval', 'IQM', 'better than first']
    return [[*head, *(name for name in rows[0] if name not in _COLUMNS)], *table]
