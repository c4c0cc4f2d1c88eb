"""Plot mode: learning curves of one or many runs, mean and confidence band over seeds, grouped by config."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import yaml

from nervex.utils import ExtraMissingError

_NOT_PART_OF_THE_GROUP = ('seed', 'exp_name')  # runs that differ only in these are repetitions of one experiment
_POINTS = 200
_T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # Student's t, two-sided 95 %, 1 to 9 degrees of freedom


@dataclass(frozen=True)
class Curve:
    """The evaluations of one run."""

    folder: str
    group: str
    label: str
    stop_val: float | None
    env_step: np.ndarray
    return_mean: np.ndarray


def read_runs(folders: Sequence[str]) -> list[Curve]:
    """
    Overview:
        The curves of all runs at or below the given folders. A folder without any run is an error that says what was
        expected.
    """
    curves = []
    for folder in folders:
        found = [os.path.dirname(os.path.dirname(path)) for path in _curve_files(folder)]
        if not found:
            raise FileNotFoundError(
                f'{folder}: holds no run: no log/evaluator/curve.csv with an evaluation in it or below it'
            )
        curves += [_read_run(os.path.dirname(path)) for path in found]
    return curves


def _curve_files(folder: str) -> list[str]:
    found = []
    for base, _, files in sorted(os.walk(folder)):
        if 'curve.csv' in files and os.path.basename(base) == 'evaluator':
            path = os.path.join(base, 'curve.csv')
            with open(path, encoding='utf-8') as f:
                if sum(1 for _ in f) > 1:
                    found.append(path)
    return found


def _read_run(folder: str) -> Curve:
    with open(os.path.join(folder, 'log', 'evaluator', 'curve.csv'), encoding='utf-8') as f:
        rows = list(csv.DictReader(f))
    with open(os.path.join(folder, 'log', 'config.yaml'), encoding='utf-8') as f:
        config = yaml.safe_load(f)
    group = json.dumps({k: v for k, v in config.items() if k not in _NOT_PART_OF_THE_GROUP}, sort_keys=True, default=str)
    env = config['env'].get('env_id') or config['env'].get('env_type')
    label = f'{env} {config["policy"].get("policy_type") or "own policy"}'
    return Curve(
        folder, group, label, config['evaluator'].get('stop_val'),
        np.array([float(r['env_step']) for r in rows]), np.array([float(r['return_mean']) for r in rows]),
    )


def band(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Overview:
        Mean of several runs on common env steps, and the half width of its 95 % confidence band. A run that ended earlier
        goes on with its last value, as a solved run does.
    Returns:
        - x, mean, half (:obj:`np.ndarray`): of equal length; half is 0 for a single run
    """
    x = np.linspace(0, max(c.env_step[-1] for c in curves), _POINTS)
    values = np.stack([np.interp(x, c.env_step, c.return_mean) for c in curves])
    n = len(curves)
    if n == 1:
        return curves[0].env_step, curves[0].return_mean, np.zeros(len(curves[0].env_step))
    t = _T_95[n - 2] if n - 2 < len(_T_95) else 1.96
    return x, values.mean(0), t * values.std(0, ddof=1) / np.sqrt(n)


def plot(folders: Sequence[str], out: str = 'curves', title: str | None = None) -> list[str]:
    """
    Overview:
        Draw the curves of runs into ``<out>.png`` and ``<out>.svg``.
    Arguments:
        - folders (:obj:`Sequence[str]`): run folders, or folders of run folders
    Returns:
        - files (:obj:`list[str]`): what was written
    """
    try:
        import matplotlib
        matplotlib.use('Agg')
        from matplotlib import pyplot
    except ImportError as e:
        raise ExtraMissingError("plotting needs matplotlib: pip install 'nervex[plot]'") from e
    groups: dict[str, list[Curve]] = {}
    for curve in read_runs(folders):
        groups.setdefault(curve.group, []).append(curve)
    figure, axes = pyplot.subplots(figsize=(8, 5), layout='constrained')
    labels = _labels(groups)
    for key, curves in groups.items():
        x, mean, half = band(curves)
        line, = axes.plot(x, mean, label=labels[key], linewidth=2)
        if len(curves) > 1:
            axes.fill_between(x, mean - half, mean + half, alpha=0.2, color=line.get_color(), linewidth=0)
    stops = {curves[0].stop_val for curves in groups.values()} - {None}
    for stop in stops:
        axes.axhline(stop, color='grey', linestyle='--', linewidth=1, label=f'stop_val {stop:g}')
    axes.set(xlabel='env steps', ylabel='evaluation return', title=title or 'Learning curves')
    axes.grid(alpha=0.3)
    axes.legend(loc='best', fontsize=9)
    files = [f'{out}.png', f'{out}.svg']
    for path in files:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return files


def _labels(groups: dict[str, list[Curve]]) -> dict[str, str]:
    """One readable name a group; folders tell groups of the same env and policy apart."""
    names = [curves[0].label for curves in groups.values()]
    labels = {}
    for key, curves in groups.items():
        name = curves[0].label
        if names.count(name) > 1:
            name += f' ({os.path.basename(os.path.normpath(curves[0].folder))})'
        n = len(curves)
        labels[key] = name if n == 1 else f'{name}, mean and 95 % band of {n} runs'
    return labels
