"""Plot mode: the learning curves of runs, finished or going on: found below folders, grouped by config, drawn."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nervex.run.curve import run_curve
from nervex.run.folder import leaves, read_yaml, state_of_run
from nervex.utils import ExtraMissingError, NothingThereError

_AXIS_LABELS = {'env_step': 'env steps', 'train_iter': 'updates', 'seconds': 'time'}
_LINES = ('-', '--', ':', '-.')  # ten groups have ten colours; the next ten the same colours and other lines
_SUFFIXES = ('.png', '.svg')
# runs that differ only in these, or in what is below them, are repetitions of one experiment
_REPETITION = 'seed', 'exp_name', 'events', 'learner.hook', 'learner.resume', 'learner.keep_ckpt', 'learner.log_window'
_POINTS = 200  # at which several runs are averaged
_FEW = 5  # runs, below which a band goes from the lowest to the highest
_T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # Student's t, two-sided 95 %, from 1 degree of freedom


# ---- the picture ----
def plot(folders: Sequence[str], out: str = 'curves', title: str | None = None, axis: str = 'env_step') -> list[str]:
    """
    Overview:
        Draw the evaluation returns of runs: a line a config, the mean over its seeds, with a band as ``band`` has it
        and a thin line for each run.
    Arguments:
        - folders (:obj:`Sequence[str]`): run folders, or folders of run folders
        - out (:obj:`str`): ``<out>.png`` and ``<out>.svg`` are written; a missing folder is made
        - title (:obj:`str | None`): None takes the name of the environment, if there is only one
        - axis (:obj:`str`): 'env_step', 'train_iter' or 'seconds'
    Returns:
        - files (:obj:`list[str]`): what was written
    """
    groups = group_runs(read_runs(folders, axis))
    try:
        import matplotlib
    except ImportError as e:
        raise ExtraMissingError("-m plot needs matplotlib: pip install 'nervex[plot]'") from e
    matplotlib.use('Agg')
    from matplotlib import pyplot
    from matplotlib.ticker import EngFormatter

    figure, axes = pyplot.subplots(figsize=(8, 5.5), layout='constrained')
    axes.xaxis.set_major_formatter('{x:,.6g} s' if axis == 'seconds' else EngFormatter(sep=''))
    axes.grid(alpha=0.3)
    all_curves = [curve for group in groups.values() for curve in group]
    stops = {curve.stop_val for curve in all_curves if curve.stop_val is not None}
    values = [*stops, *(value for curve in all_curves for value in curve.mean)]
    margin = 0.05 * (max(values) - min(values)) or 1.0
    axes.set_ylim(min(values) - margin, max(values) + margin)  # a wide band of few runs does not squeeze the lines
    for n, (label, curves) in enumerate(groups.items()):
        _draw(axes, label, curves, color=f'C{n % 10}', linestyle=_LINES[n // 10 % len(_LINES)])
    for stop in sorted(stops):
        axes.axhline(stop, color='grey', linestyle='--', linewidth=1, label=f'solved at {stop:g}')
    names = {curve.name.rpartition(' ')[0] for curve in all_curves}
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


def _draw(axes: Any, label: str, curves: list[Curve], color: str, linestyle: str) -> None:
    whole = unfailed(curves)
    x, mean, low, high = band(whole)
    n, left_out = len(whole), len(curves) - len(whole)
    mark = 'o' if len(x) == 1 else None  # one evaluation is a point, not a line
    said = label if n == 1 else f'{label}: mean of {n} runs, {band_name(n)}'
    said += f'; {left_out} failed, left out' if left_out else ''
    axes.plot(x, mean, label=said, color=color, linestyle=linestyle, linewidth=2, marker=mark)
    if len(curves) > 1:
        axes.fill_between(x, low, high, alpha=0.15, color=color, linewidth=0)
        for curve in curves:
            axes.plot(curve.x, curve.mean, color=color, linewidth=0.7, alpha=0.5)


# ---- the curves ----
@dataclass(frozen=True)
class Curve:
    """The evaluations of one run; ``config`` maps the full path of a setting to its value."""

    folder: str
    config: dict[str, Any]
    x: np.ndarray
    mean: np.ndarray
    win_rate: float | None = None  # at the end; None: the env does not say who won
    state: str = 'finished'  # or running, interrupted, killed, failed, damaged

    @property
    def name(self) -> str:
        """Environment and algorithm."""
        env = self.config.get('env.env_id') or self.config.get('env.env_type') or 'own env'
        return f'{env} {self.config.get("policy.policy_type") or "own policy"}'

    @property
    def stop_val(self) -> float | None:
        """The return at which the run counted as solved."""
        return self.config.get('evaluator.stop_val')

    @property
    def solved(self) -> bool:
        """Whether its last evaluation reached ``stop_val`` and ``stop_win_rate``, as far as they are stated."""
        wins = self.config.get('evaluator.stop_win_rate')
        stated = [(has, to) for has, to in ((self.mean[-1], self.stop_val), (self.win_rate, wins)) if to is not None]
        return bool(stated) and all(has is not None and has >= to for has, to in stated)


def read_runs(folders: Sequence[str], axis: str = 'env_step') -> list[Curve]:
    """
    Overview:
        The curves of all runs in or below the given folders, each run once. In a folder where several runs wrote, only
        the newest (``log``) is taken; name ``log_1``, ... to see an older one.
    Arguments:
        - axis (:obj:`str`): what ``x`` counts: 'env_step', 'train_iter' or 'seconds'
    """
    if axis not in _AXIS_LABELS:
        raise ValueError(f'axis: got {axis!r}, must be one of {", ".join(_AXIS_LABELS)}')
    logs: dict[str, str] = {}
    for folder in folders:
        if not os.path.isdir(folder):
            raise NothingThereError(f'{folder}: there is no such folder')
        below = [folder, *(path for path, _, _ in sorted(os.walk(folder)) if os.path.basename(path) == 'log')]
        found = [log for log in below if run_curve(*os.path.split(log))]
        if not found:
            raise NothingThereError(
                f'{folder}: holds no run that was evaluated: no log/evaluator/curve.csv with a row in it or below it'
            )
        logs.update((os.path.realpath(log), log) for log in found)
    return [_read_run(log, axis) for log in logs.values()]


def _read_run(log: str, axis: str) -> Curve:
    path, (run, name) = os.path.join(log, 'config.yaml'), os.path.split(os.path.abspath(log))
    if not os.path.isfile(path):
        raise FileNotFoundError(f'{path}: missing; runs are grouped by the config that each one saved there')
    rows, state = run_curve(run, name), state_of_run(run, name) or 'finished'  # for all that is known
    x, mean = (np.array([float(row[name]) for row in rows]) for name in (axis, 'return_mean'))
    won = rows[-1].get('win_rate')
    return Curve(run, leaves(read_yaml(path)), x, mean, float(won) if won else None, state)


def group_runs(curves: Sequence[Curve]) -> dict[str, list[Curve]]:
    """Label -> runs of one config, in the order given; what the label says is enough to tell the groups apart."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(json.dumps(_experiment(curve), sort_keys=True, default=str), []).append(curve)
    labels = _labels([group[0] for group in groups.values()])
    return dict(zip(labels, groups.values()))


def _experiment(curve: Curve) -> dict[str, Any]:
    left_out = tuple(f'{path}.' for path in _REPETITION)
    return {path: value for path, value in curve.config.items() if not f'{path}.'.startswith(left_out)}


def _labels(firsts: list[Curve]) -> list[str]:
    """One name for each group: env and algorithm, and the settings in which it differs from others of that name."""
    labels = []
    for curve in firsts:
        alike = [_experiment(other) for other in firsts if other.name == curve.name]
        paths = sorted({path for config in alike for path in config})
        differ = [path for path in paths if len({str(config.get(path)) for config in alike}) > 1]
        short = [path.rpartition('.')[2] for path in differ]
        names = [path if short.count(end) > 1 else end for path, end in zip(differ, short)]
        said = ', '.join(f'{name}={curve.config.get(path)}' for name, path in zip(names, differ))
        if len(differ) > 3:
            said = os.path.basename(curve.folder)
        labels.append(f'{curve.name} ({said})' if said else curve.name)
    return [label if labels.count(label) == 1 else f'{label} [{n}]' for n, label in enumerate(labels, 1)]


def band(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """
    Overview:
        Mean of several runs, and its 95 % confidence band by Student's t; of fewer than five runs, where that says
        little, from the lowest run to the highest. A solved run goes on with its last value; the mean ends where the
        first unsolved run ends, so that no run leaves it on the way.
    Returns:
        - x, mean, low, high (:obj:`np.ndarray`): of equal length; a single run is its own mean and band
    """
    n = len(curves)
    if n == 1:
        return curves[0].x, curves[0].mean, curves[0].mean, curves[0].mean
    unsolved = [c.x[-1] for c in curves if not c.solved]
    end = min(unsolved) if unsolved else max(c.x[-1] for c in curves)
    x = np.linspace(max(c.x[0] for c in curves), end, _POINTS)
    values = np.stack([np.interp(x, c.x, c.mean) for c in curves])
    mean = values.mean(0)
    if n < _FEW:
        return x, mean, values.min(0), values.max(0)
    t = _T_95[n - 2] if n - 2 < len(_T_95) else 1.96
    half = t * values.std(0, ddof=1) / np.sqrt(n)
    return x, mean, mean - half, mean + half


def unfailed(curves: Sequence[Curve]) -> list[Curve]:
    """Those that a mean is of: a failed run tells nothing of what is learned; all, where every one has failed."""
    return [curve for curve in curves if curve.state != 'failed'] or list(curves)


def band_name(n: int) -> str:
    """What the band of so many runs is."""
    return 'lowest to highest' if n < _FEW else '95 % band'
