"""
Measures several implementations of the same jobs side by side, in one run.

A *case* is a function ``case(clock) -> count``: it prepares whatever it needs, does the job inside ``with clock:`` (or
by ``clock.repeat(function)`` for something that takes microseconds) and returns how many units (env steps, ...) it did.
An *implementation* names where its cases are: ``'peers.sb3:CASES'`` is a mapping ``{case name: function}`` (or a
function that returns one) in a module that only its own worker process imports.

    IMPLEMENTATIONS = [Implementation('sb3', 'peers.sb3:CASES', {'stable_baselines3': 'stable-baselines3==2.9.2'}), ...]
    BENCH = Bench('train', 'env steps per second', IMPLEMENTATIONS, cases=['dqn', 'ppo'], reference='sb3')
    if __name__ == '__main__':
        run(BENCH)

In every round each implementation gets one new worker process; for each case (shuffled) the workers run one after the
other (shuffled), so that a change of the machine's load meets all of them alike. Threads are pinned by the environment
variables that the libraries read at import, and by ``torch.set_num_threads``. Only what is inside the clock counts.
"""

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path

from clock import Clock

HERE = Path(__file__).resolve().parent
THREAD_VARIABLES = ('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'NUMBA_NUM_THREADS')


@dataclass(frozen=True)
class Implementation:
    """``cases``: 'module:attribute'; ``requires``: import name -> what pip installs; ``skip``: why not to run it;
    ``home``: folder of the benchmark modules, in another checkout to measure that one."""

    name: str
    cases: str
    requires: dict[str, str] = field(default_factory=dict)
    skip: str = ''
    home: Path = HERE

    def missing(self) -> str:
        absent = [pip for module, pip in self.requires.items() if importlib.util.find_spec(module) is None]
        return self.skip or (f'not installed; pip install {" ".join(absent)}' if absent else '')


@dataclass(frozen=True)
class Bench:
    """``lower_is_better``: cells are seconds per unit instead of units per second."""

    name: str
    unit: str
    implementations: list[Implementation]
    cases: list[str]
    reference: str
    notes: str = ''
    lower_is_better: bool = False


def _serve(locator: str, threads: int, round: int) -> None:
    """The worker process: one case name a line on stdin, one JSON object a line on stdout."""
    channel = os.fdopen(os.dup(1), 'w', buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is neither measured nor mixed up with answers
    module, _, attribute = locator.partition(':')
    try:
        cases = getattr(importlib.import_module(module), attribute)
        cases = cases() if callable(cases) else cases
    except Exception:
        print(json.dumps({'error': traceback.format_exc()}), file=channel)
        return
    if threads and 'torch' in sys.modules:
        sys.modules['torch'].set_num_threads(threads)
    print(json.dumps({'cases': list(cases)}), file=channel)
    for name in sys.stdin:
        clock = Clock(round)
        try:
            count = cases[name.strip()](clock)
            answer = {'count': count, 'wall_s': clock.wall_s, 'cpu_s': clock.cpu_s, 'machine_s': clock.machine_s}
        except Exception:
            answer = {'error': traceback.format_exc()}
        print(json.dumps(answer), file=channel)


def search_path(home: Path) -> str:
    """PYTHONPATH under which the benchmark modules in ``home`` import the nervex of their own checkout."""
    return os.pathsep.join(p for p in (str(home), str(home.parent), os.environ.get('PYTHONPATH', '')) if p)


class Worker:
    """A worker process seen from outside. ``cases`` are the names it can run; empty after a failure."""

    def __init__(self, implementation: Implementation, threads: int, round: int, timeout_s: float) -> None:
        self._folder, self._timeout_s = tempfile.TemporaryDirectory(), timeout_s
        env = dict(os.environ, PYTHONPATH=search_path(implementation.home))
        env.update({variable: str(threads) for variable in THREAD_VARIABLES if threads})
        script = str(implementation.home / 'harness.py')
        command = [sys.executable, script, implementation.cases, str(threads), str(round)]
        self._process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env=env,
        )
        self.error: str = ''
        self.cases: list[str] = []

    def greet(self) -> None:
        """Wait until it has imported what it measures."""
        hello = self._answer()
        self.error = hello.get('error', '')
        self.cases = hello.get('cases', [])

    def _answer(self) -> dict:
        if not select.select([self._process.stdout], [], [], self._timeout_s)[0]:
            self._process.kill()
            return {'error': f'no answer within {self._timeout_s:.0f} s'}
        line = self._process.stdout.readline()
        return json.loads(line) if line else {'error': f'the process ended with code {self._process.wait()}'}

    def run(self, case: str) -> dict:
        if self._process.poll() is not None:
            return {'error': f'the process has ended with code {self._process.returncode}'}
        self._process.stdin.write(f'{case}\n'.encode())
        return self._answer()

    def close(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def measure(bench: Bench, rounds: int, threads: int, seed: int = 0, timeout_s: float = 900.0) -> list[dict]:
    """All rounds. A record has implementation, case, round and either count, wall_s, cpu_s, neighbours or error."""
    records, order = [], random.Random(seed)
    for round in range(rounds):
        workers = {one.name: Worker(one, threads, round, timeout_s) for one in bench.implementations}
        for name, worker in workers.items():  # all of them have been importing meanwhile
            worker.greet()
            if worker.error:
                records.append({'implementation': name, 'case': '(start)', 'round': round, 'error': worker.error})
                print(_line(records[-1]), flush=True)
        for case in order.sample(bench.cases, len(bench.cases)):
            for name in order.sample(list(workers), len(workers)):
                if case not in workers[name].cases:
                    continue
                record = {'implementation': name, 'case': case, 'round': round, **workers[name].run(case)}
                if 'error' not in record:  # neighbours: cores that other processes used meanwhile
                    others_s = max(0.0, record.pop('machine_s') - record['cpu_s'])
                    record['neighbours'] = others_s / record['wall_s']
                records.append(record)
                print(_line(record), flush=True)
        for worker in workers.values():
            worker.close()
    return records


def _line(record: dict) -> str:
    place = f'round {record["round"]}  {record["case"]:<16} {record["implementation"]:<24}'
    if 'error' in record:
        return f'{place} FAILED: {record["error"].strip().splitlines()[-1]}'
    rates = [f'{record["count"] / record[key]:,.0f}/s {key[:-2]}' for key in ('wall_s', 'cpu_s') if record[key]]
    return f'{place} {", ".join(rates)}, neighbours {record["neighbours"]:.2f} cores'


def table(bench: Bench, records: list[dict], key: str) -> str:
    """Markdown: ``median (ratio to the reference; (max - min) / median)`` for time ``key``, 'wall_s' or 'cpu_s'."""
    values: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if 'error' not in record and record[key] > 0:
            rate = record['count'] / record[key]
            values.setdefault((record['implementation'], record['case']), []).append(
                1.0 / rate if bench.lower_is_better else rate
            )
    median = {at: statistics.median(runs) for at, runs in values.items()}
    cases = [case for case in bench.cases if any(at[1] == case for at in values)]
    lines = ['| implementation | ' + ' | '.join(cases) + ' |', '|---|' + '---:|' * len(cases)]
    for one in bench.implementations:
        row = []
        for case in cases:
            at, base = (one.name, case), median.get((bench.reference, case))
            if at not in median:
                row.append('')
                continue
            number = f'{median[at]:,.0f}' if median[at] >= 100 else f'{median[at]:.3g}'
            ratio = f'{median[at] / base:.2f}x; ' if base else ''
            row.append(f'{number} ({ratio}{(max(values[at]) - min(values[at])) / median[at]:.0%})')
        if any(row):
            lines.append(f'| {one.name} | ' + ' | '.join(row) + ' |')
    return '\n'.join(lines)


def merged(bench: Bench, before: list[dict], fresh: list[dict]) -> list[dict]:
    """Records of several partial runs. A case that was measured again replaces its older records altogether: the cells
    of a column are compared with each other, so all of them come from one interleaved run."""
    again = {record['case'] for record in fresh}
    known = {one.name for one in bench.implementations}
    kept = [r for r in before if r['case'] in bench.cases and r['case'] not in again and r['implementation'] in known]
    return kept + fresh


def _parts(bench: Bench, records: list[dict]) -> str:
    """When each case was measured; empty if all were measured together."""
    when = {case: {r['when'] for r in records if r['case'] == case and 'when' in r} for case in bench.cases}
    if len(set().union(*when.values())) < 2:
        return ''
    rounds = {case: len({r['round'] for r in records if r['case'] == case}) for case in bench.cases}
    told = [f'`{case}` {", ".join(sorted(when[case]))} ({rounds[case]} rounds)' for case in bench.cases if when[case]]
    return f'Measured in parts, each column in one interleaved run of its own: {"; ".join(told)}.'


def report(bench: Bench, records: list[dict], rounds: int, threads: int) -> str:
    """The Markdown file: conditions, one table by the wall clock and one by processor time, failures."""
    packages = sorted({'torch', 'numpy', 'gymnasium', *(m for one in bench.implementations for m in one.requires)})
    versions = []
    for module in packages:
        for name in importlib.metadata.packages_distributions().get(module, [])[:1]:
            versions.append(f'{name} {importlib.metadata.version(name)}')
    neighbours = [record['neighbours'] for record in records if 'error' not in record] or [0.0]
    failures = [f'- {_line(record)}' for record in records if 'error' in record]
    machine = f'{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}'
    return '\n'.join(
        [
            f'# {bench.name}: {bench.unit}',
            '',
            f'{time.strftime("%Y-%m-%d %H:%M")}; {machine}; {", ".join(versions)}.',
            f'{"Rounds" if _parts(bench, records) else f"{rounds} rounds"}, interleaved and shuffled; '
            f'threads per worker: {threads or "library default"}; meanwhile '
            f'other processes used {statistics.median(neighbours):.2f} cores (median; {max(neighbours):.2f} at most).',
            *([_parts(bench, records)] if _parts(bench, records) else []),
            *([bench.notes] if bench.notes else []),
            '',
            f'Cells: median (ratio to {bench.reference}; spread = (max - min) / median).',
            '',
            'By the wall clock:',
            '',
            table(bench, records, 'wall_s'),
            '',
            'By processor time (the worker and its children):',
            '',
            table(bench, records, 'cpu_s'),
            '',
            *(['Failures:', '', *failures, ''] if failures else []),
        ]
    )


def parser(bench: Bench) -> argparse.ArgumentParser:
    """The options that every benchmark has; a script may add its own and hand the parsed result to :func:`run`."""
    names = [one.name for one in bench.implementations]
    result = argparse.ArgumentParser(description=f'{bench.name}: {bench.unit}')
    result.add_argument('--rounds', type=int, default=3, help='how often everything is measured')
    result.add_argument('--only', nargs='+', metavar='NAME', choices=names, help=f'implementations: {", ".join(names)}')
    result.add_argument('--cases', nargs='+', metavar='CASE', choices=bench.cases, help=f'of {", ".join(bench.cases)}')
    result.add_argument(
        '--threads', type=int, nargs='+', default=[1], help='threads per worker; 0: what the libraries choose'
    )
    result.add_argument('--seed', type=int, default=0, help='of the order of measurements')
    result.add_argument('--timeout', type=float, default=900.0, help='seconds that one case may take')
    result.add_argument('--part', action='store_true', help='keep the other cases of earlier runs in the table')
    result.add_argument('--out', type=Path, default=HERE / 'results', help='folder of the table and of raw/*.json')
    return result


def run(bench: Bench, options: argparse.Namespace | None = None) -> list[dict]:
    """Measures what the command line asks for, prints the tables and writes them. Only a complete run (all cases, all
    implementations) replaces the table in the results folder; a partial one goes to its ``raw`` folder. With ``--part``
    the table is made of the newest run of each case, and is complete once there is one of all cases. Each number of
    threads has a table of its own."""
    options = options or parser(bench).parse_args()
    if options.part and options.only:
        raise SystemExit('--part with --only: the cells of a column are compared, so all must come from one run')
    chosen = [one for one in bench.implementations if not options.only or one.name in options.only]
    for one in chosen:
        if one.missing():
            print(f'skipped: {one.name} ({one.missing()})')
    part = replace(
        bench, implementations=[one for one in chosen if not one.missing()], cases=options.cases or bench.cases
    )
    return [record for threads in options.threads for record in _tabulated(bench, part, options, threads)]


def _tabulated(bench: Bench, part: Bench, options: argparse.Namespace, threads: int) -> list[dict]:
    """The records of ``part`` with so many threads, printed and written."""
    when = time.strftime('%Y-%m-%d %H:%M')
    records = measure(part, options.rounds, threads, options.seed, options.timeout)
    name = bench.name + (f'_threads{threads}' if threads != 1 else '')
    raw = options.out / 'raw'
    raw.mkdir(parents=True, exist_ok=True)
    stored = raw / f'{name}.json'
    if options.part:
        before = json.loads(stored.read_text(encoding='utf-8')) if stored.exists() else []
        records = merged(bench, before, [{**r, 'when': when} for r in records])
        part = replace(part, cases=[case for case in bench.cases if any(r['case'] == case for r in records)])
    text = report(part, records, options.rounds, threads)
    stored.write_text(json.dumps(records, indent=1), encoding='utf-8')
    path = (options.out if part == bench else raw) / f'{name}.md'
    path.write_text(text, encoding='utf-8')
    print(f'\n{text}\nwritten to {path}')
    return records


if __name__ == '__main__':
    _serve(sys.argv[1], threads=int(sys.argv[2]), round=int(sys.argv[3]))
