"""Learning curves of finished and of running runs: found below folders, grouped by config, averaged over seeds."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nervex.run.folder import leaves, read_yaml
from nervex.run.result import curve_rows

AXES = ('env_step', 'train_iter', 'seconds')
# runs that differ only in these, or in what is below them, are repetitions of one experiment
_REPETITION = ('seed', 'exp_name', 'learner.hook', 'learner.resume', 'learner.keep_ckpt', 'learner.log_window')
_POINTS = 200  # at which several runs are averaged
_T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # Student's t, two-sided 95 %, from 1 degree of freedom


@dataclass(frozen=True)
class Curve:
    """The evaluations of one run; ``config`` maps the full path of a setting to its value."""

    folder: str
    config: dict[str, Any]
    x: np.ndarray
    mean: np.ndarray

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
        """Whether its last evaluation reached ``stop_val``."""
        return self.stop_val is not None and bool(self.mean[-1] >= self.stop_val)


def read_runs(folders: Sequence[str], axis: str = 'env_step') -> list[Curve]:
    """
    Overview:
        The curves of all runs in or below the given folders, each run once. In a folder where several runs wrote, only
        the newest (``log``) is taken; name ``log_1``, ... to see an older one.
    Arguments:
        - axis (:obj:`str`): what ``x`` counts: 'env_step', 'train_iter' or 'seconds'
    """
    if axis not in AXES:
        raise ValueError(f'axis: got {axis!r}, must be one of {", ".join(AXES)}')
    logs: dict[str, str] = {}
    for folder in folders:
        if not os.path.isdir(folder):
            raise FileNotFoundError(f'{folder}: there is no such folder')
        found = _logs_below(folder)
        if not found:
            raise FileNotFoundError(
                f'{folder}: holds no run that was evaluated: no log/evaluator/curve.csv with a row in it or below it'
            )
        logs.update((os.path.realpath(log), log) for log in found)
    return [_read_run(log, axis) for log in logs.values()]


def _logs_below(folder: str) -> list[str]:
    """Log folders with a curve: the folder itself, or any folder called ``log`` below it."""
    found = []
    for base, subfolders, _ in os.walk(folder):
        subfolders.sort()
        is_log = base == folder or os.path.basename(base) == 'log'
        if is_log and _rows(base):
            found.append(base)
    return found


def _read_run(log: str, axis: str) -> Curve:
    path = os.path.join(log, 'config.yaml')
    if not os.path.isfile(path):
        raise FileNotFoundError(f'{path}: missing; runs are grouped by the config that each one saved there')
    rows = _rows(log)
    x, mean = (np.array([float(row[name]) for row in rows]) for name in (axis, 'return_mean'))
    return Curve(os.path.dirname(os.path.abspath(log)), leaves(read_yaml(path)), x, mean)


def _rows(log: str) -> list[dict[str, str]]:
    return curve_rows(os.path.join(log, 'evaluator', 'curve.csv'))


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


def band(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Overview:
        Mean of several runs, and the half width of its 95 % confidence band by Student's t. A solved run goes on with
        its last value; the mean ends where the first unsolved run ends, so that no run leaves it on the way.
    Returns:
        - x, mean, half (:obj:`np.ndarray`): of equal length; a single run is its own mean, with a half width of 0
    """
    n = len(curves)
    if n == 1:
        return curves[0].x, curves[0].mean, np.zeros(len(curves[0].x))
    unsolved = [c.x[-1] for c in curves if not c.solved]
    end = min(unsolved) if unsolved else max(c.x[-1] for c in curves)
    x = np.linspace(max(c.x[0] for c in curves), end, _POINTS)
    values = np.stack([np.interp(x, c.x, c.mean) for c in curves])
    t = _T_95[n - 2] if n - 2 < len(_T_95) else 1.96
    return x, values.mean(0), t * values.std(0, ddof=1) / np.sqrt(n)
