"""Plot mode: a picture of the learning curves of one or many runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from nervex.entry.curves import Curve, band, group_runs, read_runs
from nervex.utils import ExtraMissingError

_AXIS_LABELS = {'env_step': 'env steps', 'train_iter': 'updates', 'seconds': 'seconds'}
_LINES = ('-', '--', ':', '-.')  # ten groups have ten colours; the next ten the same colours and other lines
_SUFFIXES = ('.png', '.svg')


def plot(folders: Sequence[str], out: str = 'curves', title: str | None = None, axis: str = 'env_step') -> list[str]:
    """
    Overview:
        Draw the evaluation returns of runs: a line a config, the mean over its seeds, with a 95 % confidence band and a
        thin line for each run.
    Arguments:
        - folders (:obj:`Sequence[str]`): run folders, or folders of run folders
        - out (:obj:`str`): ``<out>.png`` and ``<out>.svg`` are written; a missing folder is made
        - title (:obj:`str | None`): None takes the name of the environment, if there is only one
        - axis (:obj:`str`): 'env_step', 'train_iter' or 'seconds'
    Returns:
        - files (:obj:`list[str]`): what was written
    """
    groups = group_runs(read_runs(folders, axis))
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(8, 5.5), layout='constrained')
    _style(axes, groups)
    for n, (label, curves) in enumerate(groups.items()):
        _draw(axes, label, curves, color=f'C{n % 10}', linestyle=_LINES[n // 10 % len(_LINES)])
    for stop in sorted({c.stop_val for curves in groups.values() for c in curves if c.stop_val is not None}):
        axes.axhline(stop, color='grey', linestyle='--', linewidth=1, label=f'solved at {stop:g}')
    names = {curve.name.rpartition(' ')[0] for curves in groups.values() for curve in curves}
    only = f'Learning curves of {names.pop()}' if len(names) == 1 else 'Learning curves'
    axes.set(xlabel=_AXIS_LABELS[axis], ylabel='mean return of an evaluation', title=only if title is None else title)
    longest = max(len(text) for text in axes.get_legend_handles_labels()[1])
    figure.legend(loc='outside lower center', ncols=1 if longest > 45 else 2, fontsize=9, frameon=False)
    base = os.path.splitext(out)[0] if out.lower().endswith(_SUFFIXES) else out
    if os.path.dirname(base):
        os.makedirs(os.path.dirname(base), exist_ok=True)
    files = [base + suffix for suffix in _SUFFIXES]
    for path in files:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return files


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as e:
        raise ExtraMissingError("-m plot needs matplotlib: pip install 'nervex[plot]'") from e
    matplotlib.use('Agg')
    from matplotlib import pyplot

    return pyplot


def _style(axes: Any, groups: dict[str, list[Curve]]) -> None:
    from matplotlib.ticker import EngFormatter

    axes.xaxis.set_major_formatter(EngFormatter(sep=''))
    axes.grid(alpha=0.3)
    curves = [curve for group in groups.values() for curve in group]
    values = [v for curve in curves for v in curve.mean] + [c.stop_val for c in curves if c.stop_val is not None]
    margin = 0.05 * (max(values) - min(values)) or 1.0
    axes.set_ylim(min(values) - margin, max(values) + margin)  # a wide band of few runs does not squeeze the lines


def _draw(axes: Any, label: str, curves: list[Curve], color: str, linestyle: str) -> None:
    x, mean, half = band(curves)
    n = len(curves)
    mark = 'o' if len(x) == 1 else None  # one evaluation is a point, not a line
    said = label if n == 1 else f'{label}: mean of {n} runs, 95 % band'
    axes.plot(x, mean, label=said, color=color, linestyle=linestyle, linewidth=2, marker=mark)
    if n > 1:
        axes.fill_between(x, mean - half, mean + half, alpha=0.15, color=color, linewidth=0)
        for curve in curves:
            axes.plot(curve.x, curve.mean, color=color, linewidth=0.7, alpha=0.5)
