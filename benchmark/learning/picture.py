"""Learning curves of nervex and of a peer in one picture, a panel a problem."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from rows import CLEANRL, EPYMARL, NERVEX, SB3, Row

STYLE = {
    NERVEX: ('nervex', '#1f5fbf', '-'),
    SB3: ('Stable-Baselines3', '#d9661f', '--'),
    EPYMARL: ('EPyMARL', '#d9661f', '--'),
    CLEANRL: ('CleanRL', '#3f8f4f', ':'),
}
COLUMNS = 2


def draw(compared: list[tuple[Row, list[dict]]], folder: Path, stem: str, side_num: int = 2) -> list[Path]:
    """Write a PNG and an SVG: a panel for each problem that all sides have runs of."""
    import matplotlib

    matplotlib.use('Agg')
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {'font.size': 11, 'svg.hashsalt': 'nervex', 'axes.spines.top': False, 'axes.spines.right': False}
    )
    sides = [row.problem for row, _ in compared]
    problems = [problem for problem in dict.fromkeys(sides) if sides.count(problem) == side_num]
    rows = math.ceil(len(problems) / COLUMNS)
    figure, panels = plt.subplots(rows, COLUMNS, figsize=(11, 3.1 * rows), squeeze=False, layout='constrained')
    for panel, problem in zip(panels.flat, problems):
        for row, runs in compared:
            if row.problem == problem:
                _curve(panel, row, runs, to_the_last=side_num == 1)
        counts = {len(runs) for row, runs in compared if row.problem == problem}
        seeds = f'{min(counts)} to {max(counts)}' if len(counts) > 1 else str(*counts)
        panel.set_title(f'{problem.replace("_", " ")} ({seeds} seeds)', loc='left', fontweight='bold')
        panel.set_xlabel('env steps')
        panel.set_ylabel('mean return')
        panel.xaxis.set_major_formatter(lambda x, _: f'{x / 1000:,g}k' if x else '0')
        panel.grid(alpha=0.3)
        seen = [mean for row, runs in compared if row.problem == problem for run in runs for _, mean in run['history']]
        edge = 0.05 * (max(seen) - min(seen)) or 1.0
        panel.set_ylim(min(seen) - edge, max(seen) + edge)
    for panel in panels.flat[len(problems) :]:
        panel.set_axis_off()
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc='outside upper center', ncols=2, frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, settings in ((f'{stem}.png', {'dpi': 110}), (f'{stem}.svg', {'metadata': {'Date': None}})):
        figure.savefig(folder / name, **settings)
        written.append(folder / name)
    plt.close(figure)
    return written


def _curve(panel: Any, row: Row, runs: list[dict], to_the_last: bool) -> None:
    """``to_the_last``: a run that ended earlier, at its goal, counts with its last value from there on."""
    label, color, line = STYLE[row.side]
    points = [np.array(run['history'], dtype=float).T for run in runs]
    x = np.unique(np.concatenate([steps for steps, _ in points]))
    ends = [steps[-1] for steps, _ in points]
    x = x[(x >= max(steps[0] for steps, _ in points)) & (x <= (max(ends) if to_the_last else min(ends)))]
    each = np.array([np.interp(x, *point) for point in points])
    panel.plot(x, each.mean(0), line, color=color, label=label, linewidth=1.8)
    panel.fill_between(x, each.min(0), each.max(0), color=color, alpha=0.18, linewidth=0)
