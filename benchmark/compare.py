"""
Two commits of nervex beside each other: every figure of its own in the benchmarks, measured in one interleaved run.

    python benchmark/compare.py main~20 main
    python benchmark/compare.py v0.1.0 HEAD --benches train data --cases dqn ppo cart_add1 --rounds 5

Both commits are checked out in worktrees of a temporary folder, and each is measured by its own benchmark scripts. A
row is `slower` when the new median is below the old one by more than the larger spread of the two, (max - min) /
median; then the exit code is 1. Peers are not run: `results/` has the figures beside them.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import parallel_bench
from harness import HERE, Bench, Implementation, measure, search_path

BENCHES = ('train', 'solve', 'data', 'containers', 'returns', 'parts', 'env', 'parallel')
LEAST_TOLERANCE = 0.03  # medians of few rounds differ by so much without any cause

Values = dict[tuple[str, str], dict[str, list[float]]]  # (implementation, case) -> 'old' or 'new' -> larger is better


@dataclass(frozen=True)
class Row:
    """One figure of both commits: medians, larger is better, and the larger spread."""

    bench: str
    what: str
    old: float
    new: float
    spread: float

    @property
    def ratio(self) -> float:
        return self.new / self.old

    @property
    def slower(self) -> bool:
        return self.ratio < 1 - max(self.spread, LEAST_TOLERANCE)


@contextlib.contextmanager
def checkouts(old: str, new: str) -> Iterator[dict[str, Path]]:
    """Worktrees of the two commits: 'old' and 'new' -> folder of benchmark scripts."""
    with tempfile.TemporaryDirectory() as folder:
        homes = {}
        try:
            for name, commit in (('old', old), ('new', new)):
                _git('worktree', 'add', '--detach', '--force', str(Path(folder, name)), commit)
                homes[name] = Path(folder, name, 'benchmark')
            yield homes
        finally:
            for home in homes.values():
                _git('worktree', 'remove', '--force', str(home.parent))


def _git(*arguments: str) -> None:
    done = subprocess.run(['git', '-C', str(HERE.parent), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f'git {" ".join(arguments)}: {done.stderr.strip()}')


def described(home: Path, bench: str) -> dict:
    """What a checkout's script says of itself: cases, and the implementations that are nervex."""
    code = (
        f'import json, {bench}_bench as script; bench = script.BENCH; print(json.dumps(dict(cases=bench.cases, '
        "implementations=[[one.name, one.cases] for one in bench.implementations if 'nervex' in one.requires])))"
    )
    env = {**os.environ, 'PYTHONPATH': search_path(home)}
    done = subprocess.run([sys.executable, '-c', code], cwd=home, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f'{home}/{bench}_bench.py: {done.stderr.strip().splitlines()[-1]}')
    return json.loads(done.stdout)


def compare(bench: str, homes: dict[str, Path], options: argparse.Namespace) -> list[Row]:
    """The rows of one benchmark, by processor time."""
    told = {side: described(home, bench) for side, home in homes.items()}
    both = [name for name, _ in told['new']['implementations'] if name in dict(told['old']['implementations'])]
    cases = [case for case in told['new']['cases'] if case in told['old']['cases']]
    cases = [case for case in cases if not options.cases or case in options.cases]
    implementations = [
        Implementation(f'{name} ({side})', dict(told[side]['implementations'])[name], home=home)
        for name in both
        for side, home in homes.items()
    ]
    if not cases:
        return []
    part = Bench(bench, '', implementations, cases, reference='')
    values: Values = {}
    for record in measure(part, options.rounds, options.threads):
        if 'error' not in record and record['cpu_s'] > 0:
            name, _, side = record['implementation'].rpartition(' (')
            found = values.setdefault((name, record['case']), {'old': [], 'new': []})
            found[side[:-1]].append(record['count'] / record['cpu_s'])
    return rows_of(bench, values)


def compare_parallel(homes: dict[str, Path], options: argparse.Namespace) -> list[Row]:
    """The rows of parallel mode, each measurement in a process of its own."""
    order, values = random.Random(0), {}
    cases = [case for case in parallel_bench.CASES if not options.cases or case in options.cases]
    for seed in range(options.rounds):
        for case in order.sample(cases, len(cases)):
            for side in order.sample(list(homes), len(homes)):
                record = parallel_bench.measure('nervex', case, seed, 900.0, homes[side])
                print(f'{side}: {parallel_bench.line_of(record)}', flush=True)
                for what, at, figure, _, lower in parallel_bench.ROWS:
                    if at == case and figure in record:
                        value = 1 / record[figure] if lower else record[figure]
                        values.setdefault((what, case), {'old': [], 'new': []})[side].append(value)
    return rows_of('parallel', values)


def rows_of(bench: str, values: Values) -> list[Row]:
    """Medians and spreads; what only one commit could run is left out here and shows as FAILED above."""
    rows = []
    for (name, case), found in values.items():
        if found['old'] and found['new']:
            medians = {side: statistics.median(runs) for side, runs in found.items()}
            spread = max((max(runs) - min(runs)) / medians[side] for side, runs in found.items())
            rows.append(Row(bench, f'{name}, {case}', medians['old'], medians['new'], spread))
    return rows


def table(rows: list[Row]) -> str:
    """Markdown, the worst ratio first."""
    lines = ['| benchmark | row | old | new | new / old | spread | |', '|---|---|---:|---:|---:|---:|---|']
    for row in sorted(rows, key=lambda row: row.ratio):
        told = 'slower' if row.slower else ''
        figures = f'{row.old:,.4g} | {row.new:,.4g} | {row.ratio:.2f} | {row.spread:.0%}'
        lines.append(f'| {row.bench} | {row.what} | {figures} | {told} |')
    return '\n'.join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('old', help='commit to compare with')
    parser.add_argument('new', help='commit that must not be slower')
    parser.add_argument('--benches', nargs='+', choices=BENCHES, default=BENCHES[:-1], help='default: all but parallel')
    parser.add_argument('--cases', nargs='+', metavar='CASE', help='these cases only')
    parser.add_argument('--rounds', type=int, default=3, help='how often everything is measured')
    parser.add_argument('--threads', type=int, default=1, help='threads per worker')
    parser.add_argument('--out', type=Path, help='write the table here, too')
    options = parser.parse_args()
    rows = []
    with checkouts(options.old, options.new) as homes:
        for bench in options.benches:
            rows += compare_parallel(homes, options) if bench == 'parallel' else compare(bench, homes, options)
    slower = [row for row in rows if row.slower]
    head = f'{options.old} -> {options.new}, {options.rounds} rounds, by processor time: {len(rows)} rows, '
    text = f'{head}{len(slower)} slower beyond their spread\n\n{table(rows)}\n'
    print(text)
    if options.out:
        options.out.write_text(text, encoding='utf-8')
    sys.exit(1 if slower or not rows else 0)


if __name__ == '__main__':
    main()
