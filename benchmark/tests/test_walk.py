"""How much of the house one warm round passes: the budget of HOUSE, so that a hot path does not grow unseen."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_FILES, MOST_LINES, MOST_CROSSINGS = 30, 5000, 2


def test_a_round_of_collecting_and_learning_passes_few_files_and_crossings():
    out = subprocess.run(
        [sys.executable, str(ROOT / 'benchmark' / 'walk.py')],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
    ).stdout
    files, lines = next(line.split() for line in out.splitlines() if ' files, ' in line)[0:3:2]
    crossings = next(line.split()[0] for line in out.splitlines() if 'crossings between' in line)
    assert int(files) <= MOST_FILES and int(lines) <= MOST_LINES and int(crossings) <= MOST_CROSSINGS, out
