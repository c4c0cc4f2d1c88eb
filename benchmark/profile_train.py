"""
Where the time of one training loop goes: runs a case under cProfile, inside the clock only.

    python benchmark/profile_train.py dqn                 # of nervex; top functions by their own time
    python benchmark/profile_train.py ppo peers.sb3:CASES --sort cumulative --rows 60

The profiler slows Python calls down, so the shares of small functions are exaggerated; the per-call times of the
large ones, and the call counts, are what to look at.
"""

import argparse
import cProfile
import importlib
import os
import pstats
import sys
import tempfile
from pathlib import Path

from clock import Clock
from harness import THREAD_VARIABLES


class ProfilingClock(Clock):
    def __init__(self) -> None:
        super().__init__()
        self.profile = cProfile.Profile()

    def __enter__(self) -> 'ProfilingClock':
        super().__enter__()
        self.profile.enable()
        return self

    def __exit__(self, *exc: object) -> None:
        self.profile.disable()
        super().__exit__(*exc)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('case', help='dqn, dqn1, ppo, ...')
    parser.add_argument('cases', nargs='?', default='peers.nervex:CASES', help="'module:attribute' of the cases")
    parser.add_argument('--sort', default='tottime', help="'tottime' or 'cumulative'")
    parser.add_argument('--rows', type=int, default=45)
    options = parser.parse_args()
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, '1'))  # before anything imports torch
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    module, _, attribute = options.cases.partition(':')
    cases = getattr(importlib.import_module(module), attribute)
    clock, count = ProfilingClock(), 0
    with tempfile.TemporaryDirectory() as folder:
        home = os.getcwd()
        os.chdir(folder)
        try:
            count = cases[options.case](clock)
        finally:
            os.chdir(home)
    stats = pstats.Stats(clock.profile)
    stats.sort_stats(options.sort).print_stats(options.rows)
    print(f'{count} units in {clock.wall_s:.2f} s under the profiler ({clock.wall_s / count * 1e6:.1f} us each)')


if __name__ == '__main__':
    main()
