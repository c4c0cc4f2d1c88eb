"""
Exploitability over games as one picture, of curves that app_zoo.poker.entry.exploit and peers/openspiel_nfsp.py print:

    python benchmark/poker_picture.py OUT LABEL=CURVE.csv [LABEL=CURVE.csv ...]
"""

import csv
import sys
from pathlib import Path

COLUMN = 'average'


def main() -> None:
    """Write OUT.png; curves with the same label have the same colour."""
    import matplotlib

    matplotlib.use('Agg')
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(7, 4), layout='constrained')
    labels: list[str] = []
    for label, _, path in (argument.partition('=') for argument in sys.argv[2:]):
        rows = [row for row in csv.DictReader(Path(path).read_text(encoding='utf-8').splitlines()) if int(row['games'])]
        known = label in labels
        labels += [] if known else [label]
        panel.plot(
            [int(row['games']) for row in rows],
            [float(row[COLUMN]) for row in rows],
            color=f'C{labels.index(label)}',
            label=None if known else label,
            linewidth=1.5,
        )
    panel.set(xlabel='games', ylabel='exploitability of the average, chips a game', xscale='log', yscale='log')
    panel.grid(alpha=0.3, which='both')
    panel.legend(frameon=False)
    figure.savefig(f'{sys.argv[1]}.png', dpi=110)


if __name__ == '__main__':
    main()
