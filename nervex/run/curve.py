"""The learning curve of one run: its rows, and its picture, which needs no plotting package."""

from __future__ import annotations

import csv
import math
import os

import numpy as np

from nervex.utils.drawing import Canvas, encode_png
from nervex.utils.file_helper import atomic_write

_SIZE = (960, 600)
_FRAME = (100.0, 930.0, 76.0, 522.0)  # left, right, floor and ceiling of what is drawn, in pixels from below
_DARK, _INK, _GRID, _BAND, _CURVE = (30, 30, 40), (100, 100, 110), (230, 230, 235), (211, 225, 245), (31, 95, 191)


def curve_rows(path: str) -> list[dict[str, str]]:
    """The complete rows of a ``curve.csv``; the last one may be half written while a run goes on."""
    if not os.path.isfile(path):
        return []
    with open(path, encoding='utf-8', newline='') as f:
        return [row for row in csv.DictReader(f) if None not in row.values()]


def run_curve(run: str, log: str = 'log') -> list[dict[str, str]]:
    """The evaluations of the run in a folder."""
    return curve_rows(os.path.join(run, log, 'evaluator', 'curve.csv'))


def best_return(rows: list[dict[str, str]]) -> float:
    """The highest mean return of a curve; NaN where nothing was evaluated."""
    return max((float(row['return_mean']) for row in rows), default=math.nan)


def round_numbers(low: float, high: float) -> list[float]:
    """Some three to six multiples of 1, 2 or 5 times a power of ten in this range, to be written at an axis."""
    if not high > low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 5)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def draw_curve(path: str, title: str, stop_val: float | None) -> str | None:
    """
    Overview:
        Draw a ``curve.csv`` as PNG beside it: the mean return of the evaluations over env steps, a band from the worst
        to the best episode, and a line at ``stop_val``.
    Returns:
        - picture (:obj:`str | None`): the file; None where nothing was evaluated
    """
    rows = curve_rows(path)
    names = ('env_step', 'return_mean', 'return_min', 'return_max')
    x, mean, low, high = np.array([[float(row[name]) for row in rows] for name in names]).reshape(4, -1)
    if not len(x):
        return None
    seen = np.concatenate([low, high] if stop_val is None else [low, high, [stop_val]])
    bottom, top = seen.min(), seen.max()
    margin = 0.03 * (top - bottom) or 1.0
    bottom, top = bottom - margin, top + margin
    left, right, floor, ceiling = _FRAME

    def place(steps: np.ndarray | float, values: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        across = (np.asarray(steps) - x[0]) / (np.ptp(x) or 1.0)
        return left + across * (right - left), floor + (np.asarray(values) - bottom) / (top - bottom) * (
            ceiling - floor
        )

    canvas = Canvas(_SIZE, (0, _SIZE[0]), (0, _SIZE[1]))
    for value in round_numbers(bottom, top):
        y = float(place(0, value)[1])
        canvas.segment((left, y), (right, y), 1, _GRID)
        canvas.text((left - 10, y - 5), f'{value:,.6g}', 10, _INK, align=1)
    for step in round_numbers(x[0], x[-1]):
        at = float(place(step, 0)[0])
        canvas.segment((at, floor), (at, floor - 5), 1, _INK)
        canvas.text((at, floor - 24), f'{step:,.6g}', 10, _INK, align=0.5)
    if len(x) > 1:
        canvas.between(place(x, 0)[0], place(0, low)[1], place(0, high)[1], _BAND)
    if stop_val is not None:
        y = float(place(0, stop_val)[1])
        for start in np.arange(left, right - 4, 12):
            canvas.segment((start, y), (start + 6, y), 1.5, _INK)
        canvas.text((left + 10, y + 7), f'stop at {stop_val:g}', 9, _INK)
    canvas.line([(left, ceiling), (left, floor), (right, floor)], 1, _INK)
    points = list(zip(*(part.tolist() for part in place(x, mean))))
    canvas.line(points, 2.5, _CURVE)
    for point in points if len(points) <= 60 else points[-1:]:
        canvas.disc(point, 3.5, _CURVE)
    canvas.text(((left + right) / 2, _SIZE[1] - 32), title, 13, _DARK, align=0.5)
    best = f'best {mean.max():,.6g} at {x[mean.argmax()]:,.0f} env steps, last {mean[-1]:,.6g}'
    canvas.text(((left + right) / 2, _SIZE[1] - 56), f'{best}; band: worst to best episode', 9, _INK, align=0.5)
    canvas.text(((left + right) / 2, 16), 'env steps', 11, _DARK, align=0.5)
    canvas.text((24, (floor + ceiling) / 2), 'return of an evaluation', 11, _DARK, align=0.5, up=True)
    picture = os.path.splitext(path)[0] + '.png'
    with atomic_write(picture, 'wb') as f:
        f.write(encode_png(canvas.pixels))
    return picture
