"""
Collecting beside learning (``actor.beside_learning``) against collecting and learning in turn: two runs of a config in
one process, a slice of rounds of each in turn, so that whatever else the machine does meets both.

    OMP_NUM_THREADS=1 python benchmark/beside_bench.py atari_ppo -o policy.model.bfloat16=true --pairs 10 --rounds 1

Printed, as JSON: seconds of a round in turn and beside (medians); the ratio of each pair of slices (quartiles); the
processor seconds that collecting and learning take in a round, without threads of the envs' own, in turn and beside;
the ratio that these allow at most, both in turn over the larger one beside; the load of the machine. On a busy machine
the ratio of the slices says little: two threads get two shares of it, and one that is put aside while it holds
Python's lock holds up the other.
"""

import argparse
import json
import os
import tempfile
import threading
import time
from typing import Any

import numpy as np

from nervex.run.build import build_serial

QUIET = ('evaluator.eval_freq=null', 'learner.resume.interval_s=null', 'actor.collect_print_freq=0')


class Side:
    """A run, and what its slices took; ``beside`` says whether it collects while it learns."""

    def __init__(self, config: str, beside: bool, overrides: list[str], folder: str) -> None:
        name = f'exp_name={folder}/{"beside" if beside else "turn"}'
        own = (*QUIET, name, f'actor.beside_learning={str(beside).lower()}', *overrides)
        self.run, self.beside = build_serial(config, 0, overrides=own), beside
        self.collecting, self.slices = 0.0, []  # type: ignore[var-annotated]
        actor = self.run.actor._actor if beside else self.run.actor
        self._inner, actor.generate_data = actor.generate_data, self._timed

    def _timed(self, *args: Any) -> Any:
        start = time.thread_time()
        answer = self._inner(*args)
        self.collecting += time.thread_time() - start
        return answer

    def slice(self, rounds: int) -> None:
        """So many rounds, as the serial loop has them."""
        run = self.run
        if self.beside:
            run.actor._fast.__enter__()  # what multiplies is this run's choice, for the whole process
        self.collecting, learning = 0.0, 0.0
        start = time.perf_counter()
        for _ in range(rounds):
            run.commander.step()
            run.collect()
            begun = time.thread_time()
            for batch in run.batches():
                run.train(batch)
            learning += time.thread_time() - begun
        run.actor.settle()
        self.slices.append((time.perf_counter() - start, self.collecting, learning))
        if self.beside:
            run.actor._fast.__exit__()

    def per_round(self, rounds: int) -> list[float]:
        """Medians of seconds: passed, and of the processor for collecting and for learning."""
        return [round(float(x), 5) for x in np.median(self.slices, axis=0) / rounds]


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('config')
    parser.add_argument('-o', dest='overrides', action='append', default=[], help='a setting, for both')
    parser.add_argument('--rounds', type=int, default=1, help='rounds of a slice')
    parser.add_argument('--pairs', type=int, default=10, help='slices of each')
    parser.add_argument('--warm-up', type=int, default=2, help='slices of each that are not counted')
    args = parser.parse_args()
    loads = []
    with tempfile.TemporaryDirectory() as folder:
        sides = [Side(args.config, beside, args.overrides, folder) for beside in (False, True)]
        with sides[0].run, sides[1].run:
            for k in range(args.warm_up + args.pairs):
                for side in sides if k % 2 else sides[::-1]:
                    side.slice(args.rounds)
                if k >= args.warm_up:
                    loads.append(os.getloadavg()[0])
    for side in sides:
        del side.slices[: args.warm_up]
    turn, beside = (np.array(side.slices)[:, 0] for side in sides)
    (_, collect, learn), own = sides[0].per_round(args.rounds), sides[1].per_round(args.rounds)
    figures = {
        'config': ' '.join([args.config, *args.overrides]),
        's_in_turn': sides[0].per_round(args.rounds)[0],
        's_beside': own[0],
        'ratio': [round(float(x), 2) for x in np.quantile(turn / beside, [0.25, 0.5, 0.75])],
        'cpu_collect_learn': [collect, learn],
        'cpu_collect_learn_beside': own[1:],
        'at_most': round((collect + learn) / max(own[1:]), 2),
        'load': [round(min(loads), 1), round(max(loads), 1)],
        'threads_left': threading.active_count() - 1,
    }
    print(json.dumps(figures))


if __name__ == '__main__':
    main()
