"""The learning curve of one run: its rows, and its picture, which needs no plotting package."""

from __future__ import annotations

import csv
import math
import os
from html import escape

import numpy as np

from nervex.utils.file_helper import atomic_write

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 400, 70, 36, 16, 50


def curve_rows(path: str) -> list[dict[str, str]]:
    """The complete rows of a ``curve.csv``; the last one may be half written while a run goes on."""
    if not os.path.isfile(path):
        return []
    with open(path, encoding='utf-8', newline='') as f:
        return [row for row in csv.DictReader(f) if None not in row.values()]


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
        Draw a ``curve.csv`` as SVG beside it: the mean return of the evaluations over env steps, a band from the worst
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
    x0, y0 = x.min(), seen.min()
    x_scale = (_WIDTH - _LEFT - _RIGHT) / (np.ptp(x) or 1.0)
    y_scale = (_HEIGHT - _TOP - _BOTTOM) / (np.ptp(seen) or 1.0)

    def place(steps: np.ndarray | float, values: np.ndarray | float) -> np.ndarray:
        pixels = (np.asarray(steps) - x0) * x_scale + _LEFT, _HEIGHT - _BOTTOM - (np.asarray(values) - y0) * y_scale
        return np.stack(np.broadcast_arrays(*pixels), -1).reshape(-1, 2)

    def points(steps: np.ndarray, values: np.ndarray) -> str:
        return ' '.join(f'{a:.1f},{b:.1f}' for a, b in place(steps, values))

    def text(at: tuple[float, float], words: str, more: str = 'text-anchor="middle"') -> str:
        return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" {more}>{escape(words)}</text>'

    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts = [text((middle, 20), title), text((middle, _HEIGHT - 10), 'env steps')]
    parts.append(text((-(_TOP + _HEIGHT - _BOTTOM) / 2, 16), 'return', 'transform="rotate(-90)" text-anchor="middle"'))
    for step in round_numbers(x0, x.max()):
        at = float(place(step, y0)[0, 0])
        side = 'end' if at > _WIDTH - 2 * _RIGHT else 'middle'
        parts.append(text((at, _HEIGHT - _BOTTOM + 18), f'{step:,.6g}', f'text-anchor="{side}"'))
    for value in round_numbers(y0, seen.max()):
        parts.append(text((_LEFT - 6, float(place(x0, value)[0, 1]) + 4), f'{value:g}', 'text-anchor="end"'))
        parts.append(f'<polyline points="{points(np.array([x0, x.max()]), np.full(2, value))}" stroke="#ddd"/>')
    band = points(np.concatenate([x, x[::-1]]), np.concatenate([low, high[::-1]]))
    parts.append(f'<polygon points="{band}" fill="#1f5fbf" fill-opacity="0.15"/>')
    parts.append(f'<polyline points="{points(x, mean)}" fill="none" stroke="#1f5fbf" stroke-width="2"/>')
    parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="#1f5fbf"/>' for a, b in place(x, mean)]
    if stop_val is not None:
        line = points(np.array([x0, x.max()]), np.full(2, stop_val))
        parts.append(f'<polyline points="{line}" stroke="grey" stroke-dasharray="6 4"/>')
        parts.append(
            text((_WIDTH - _RIGHT, float(place(x0, stop_val)[0, 1]) - 4), f'stop at {stop_val:g}', 'text-anchor="end"')
        )
    picture = os.path.splitext(path)[0] + '.svg'
    with atomic_write(picture, 'w') as f:
        f.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" '
            'font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n' + '\n'.join(parts) + '\n</svg>\n'
        )
    return picture
