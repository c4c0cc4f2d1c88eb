"""Learning curves of nervex and of Stable-Baselines3 in one picture, a panel a config."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from rows import NERVEX, Row

from nervex.entry.plot_entry import Curve, band

STYLE = {NERVEX: ('nervex', '#1f5fbf', '-'), 'sb3': ('Stable-Baselines3', '#d9661f', '--')}
COLUMNS = 2


def draw(compared: list[tuple[Row, list[dict]]], folder: Path) -> list[Path]:
    """Write ``curves.png`` and ``curves.svg``: a panel for each config that both sides have runs of."""
    import matplotlib

    matplotlib.use('Agg')
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {'font.size': 11, 'svg.hashsalt': 'nervex', 'axes.spines.top': False, 'axes.spines.right': False}
    )
    sides = [row.config for row, _ in compared]
    configs = [config for config in dict.fromkeys(sides) if sides.count(config) == len(STYLE)]
    rows = math.ceil(len(configs) / COLUMNS)
    figure, panels = plt.subplots(rows, COLUMNS, figsize=(11, 3.1 * rows), squeeze=False, layout='constrained')
    for panel, config in zip(panels.flat, configs):
        for row, runs in compared:
            if row.config == config:
                _curve(panel, row, runs)
        counts = {len(runs) for row, runs in compared if row.config == config}
        seeds = f'{min(counts)} to {max(counts)}' if len(counts) > 1 else str(*counts)
        panel.set_title(f'{config.replace("_", " ")} ({seeds} seeds)', loc='left', fontweight='bold')
        panel.set_xlabel('env steps')
        panel.set_ylabel('mean return')
        panel.xaxis.set_major_formatter(lambda x, _: f'{x / 1000:,.0f}k' if x else '0')
        panel.grid(alpha=0.3)
        seen = [mean for row, runs in compared if row.config == config for run in runs for _, mean in run['history']]
        edge = 0.05 * (max(seen) - min(seen)) or 1.0  # bands of three seeds reach beyond what any run can have
        panel.set_ylim(min(seen) - edge, max(seen) + edge)
    for panel in panels.flat[len(configs) :]:
        panel.set_axis_off()
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc='outside upper center', ncols=2, frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, settings in (('curves.png', {'dpi': 110}), ('curves.svg', {'metadata': {'Date': None}})):
        figure.savefig(folder / name, **settings)
        written.append(folder / name)
    plt.close(figure)
    return written


def _curve(panel: Any, row: Row, runs: list[dict]) -> None:
    label, color, line = STYLE[row.side]
    curves = []
    for run in runs:
        points = np.array(run['history'], dtype=float)
        curves.append(Curve(f'{row.name} {run["seed"]}', {}, points[:, 0], points[:, 1]))
    x, mean, half = band(curves)
    panel.plot(x, mean, line, color=color, label=label, linewidth=1.8)
    panel.fill_between(x, mean - half, mean + half, color=color, alpha=0.18, linewidth=0)
