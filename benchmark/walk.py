"""
What one round of collecting and learning passes through: runs a config's serial loop until everything is recorded and
warm, then traces some rounds that collect and update, and tells of the median one: an episode that ends in a round, or
a line of the log, makes its walk longer.

    python benchmark/walk.py                     # the DQN config of CartPole
    python benchmark/walk.py cartpole_ppo --lines

Printed: every file of which a line ran, with the lines of the file and how many of them ran (the sums are what a
reader has to know), and every crossing between NumPy and torch: where ``torch.from_numpy``, ``torch.as_tensor``,
``torch.tensor`` or ``Tensor.numpy`` was called, and how often in how many env steps.
"""

import argparse
import logging
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ('nervex', 'app_zoo')
_CROSSINGS = ('from_numpy', 'as_tensor', 'tensor')


class Walk:
    """Notes files, lines and crossings of what runs inside the ``with`` block."""

    def __init__(self) -> None:
        self.lines: dict[str, set[int]] = {}
        self.crossings: Counter = Counter()
        self._known: dict[str, bool] = {}

    def __enter__(self) -> 'Walk':
        import torch

        self._real = {name: getattr(torch, name) for name in _CROSSINGS}
        for name, function in self._real.items():
            setattr(torch, name, self._counted(f'torch.{name}', function))
        self._numpy = torch.Tensor.numpy
        torch.Tensor.numpy = self._counted('Tensor.numpy', self._numpy)  # type: ignore[method-assign]
        sys.settrace(self._trace)
        return self

    def __exit__(self, *exc: object) -> None:
        import torch

        sys.settrace(None)
        for name, function in self._real.items():
            setattr(torch, name, function)
        del torch.Tensor.numpy  # the one of the C base class is visible again

    def _counted(self, name: str, function: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            path = frame.f_code.co_filename
            if self._ours(path) or path.startswith('<'):
                place = path if path.startswith('<') else str(Path(path).relative_to(ROOT))
                self.crossings[f'{name} in {place}:{frame.f_lineno}'] += 1
            return function(*args, **kwargs)

        return counted

    def _ours(self, path: str) -> bool:
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = any(path.startswith(f'{ROOT / package}/') for package in PACKAGES)
        return known

    def _trace(self, frame: Any, event: str, arg: Any) -> Any:
        path = frame.f_code.co_filename
        if not self._ours(path):
            return None
        self.lines.setdefault(path, set()).add(frame.f_lineno)
        return self._line

    def _line(self, frame: Any, event: str, arg: Any) -> Any:
        if event == 'line':
            self.lines[frame.f_code.co_filename].add(frame.f_lineno)
        return self._line


def walk(config: str, warm_up_iters: int, rounds: int) -> tuple[Walk, int, int]:
    """Of some rounds of a serial run, the walk of median length, its env steps and updates."""
    try:
        from nervex.run.build import build_serial
    except ModuleNotFoundError:
        from nervex.entry.build import build_serial

    with build_serial(config, seed=0) as run:
        run.learner.call_hook('before_run')

        def one_round() -> None:
            run.commander.step()
            run.collect()
            for batch in run.batches():
                run.train(batch)

        while run.learner.train_iter < warm_up_iters:
            one_round()
        walks = []
        for _ in range(rounds):
            steps, updates = run.actor.total_step, run.learner.train_iter
            with Walk() as seen:
                one_round()
            walks.append((seen, run.actor.total_step - steps, run.learner.train_iter - updates))
        return sorted(walks, key=lambda one: (len(one[0].lines), sum(map(len, one[0].lines.values()))))[rounds // 2]


def main() -> None:
    """Print the walk of a config."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('config', nargs='?', default='cartpole_dqn', help='name or file of a config')
    parser.add_argument('--warm-up', type=int, default=2000, help='updates before the walk begins')
    parser.add_argument('--rounds', type=int, default=9, help='rounds that are walked, of which the median one is told')
    parser.add_argument('--lines', action='store_true', help='also the numbers of the lines that ran')
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    logging.disable(logging.WARNING)
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            seen, steps, updates = walk(options.config, options.warm_up, options.rounds)
        finally:
            os.chdir(home)
    total = ran = 0
    rooms: Counter = Counter()
    for path in sorted(seen.lines):
        name, length = str(Path(path).relative_to(ROOT)), len(Path(path).read_text(encoding='utf-8').splitlines())
        total, ran = total + length, ran + len(seen.lines[path])
        rooms['/'.join(Path(name).parts[: 3 if 'worker' in name else 2])] += length
        print(f'{length:6} lines, {len(seen.lines[path]):4} ran  {name}')
        if options.lines:
            print('        ', *sorted(seen.lines[path]))
    print(f'{len(seen.lines)} files, {total} lines, of which {ran} ran, in {steps} env steps and {updates} updates')
    print('lines by room:', ', '.join(f'{room} {count}' for room, count in rooms.most_common()))
    print(f'{sum(seen.crossings.values())} crossings between NumPy and torch:')
    for place, count in seen.crossings.most_common():
        print(f'{count:6}  {place}')


if __name__ == '__main__':
    main()
