"""
Parallel mode beside RLlib and bare Ray, every measurement in a process of its own, interleaved.

    python benchmark/parallel_bench.py --rounds 3
    python benchmark/parallel_bench.py --cases ppo sleep4 --only nervex rllib

All sides run with one torch thread a process, without a dashboard, and with workers of normal priority (Ray starts them
with nice 15 unless RAY_worker_niceness says otherwise).
"""

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from clock import _machine_busy_seconds
from harness import HERE, THREAD_VARIABLES, search_path

CASES = ('ppo', 'impala', 'sleep1', 'sleep4', 'sleep8', 'images', 'stepped', 'weights')
SIDES = {  # name -> (module of its cases, what it needs, cases that it has not)
    'nervex': ('peers.parallel_nervex', 'ray', ()),
    'rllib': ('peers.rllib', 'ray.rllib', ('images', 'stepped')),
    'sb3': ('peers.parallel_sb3', 'stable_baselines3', CASES[1:]),
    'bare ray': ('peers.bare_ray', 'ray', ('ppo', 'impala', 'stepped')),
}
ROWS = [  # (what, case, figure, unit, lower is better)
    ('PPO CartPole to 195, after the build', 'ppo', 'wall_s', 's', True),
    ('the same, processor time', 'ppo', 'cpu_s', 's', True),
    ('the same, from launching the program', 'ppo', 'launch_s', 's', True),
    ('the same, env steps', 'ppo', 'steps', '', True),
    ('memory then, RSS', 'ppo', 'rss_mb', 'MB', True),
    ('memory then, PSS', 'ppo', 'pss_mb', 'MB', True),
    ('IMPALA CartPole', 'impala', 'per_s', 'steps/s', False),
    ('the same, by processor time', 'impala', 'per_cpu_s', 'steps/s', False),
    ('its memory, PSS', 'impala', 'pss_mb', 'MB', True),
    ('env that sleeps 2 ms, 1 actor', 'sleep1', 'per_s', 'steps/s', False),
    ('4 actors', 'sleep4', 'per_s', 'steps/s', False),
    ('8 actors', 'sleep8', 'per_s', 'steps/s', False),
    ('84x84x4 observations into the buffer, made before', 'images', 'per_s', 'MB/s', False),
    ('the same, from 8 envs that are stepped', 'stepped', 'per_s', 'MB/s', False),
    ('30 MB of weights to 4 actors', 'weights', 'ms', 'ms', True),
]
MARK = 'RESULT '


def _serve(module: str, case: str, seed: int) -> None:
    """The child process: one case, one line of JSON."""
    try:
        answer = importlib.import_module(module).CASES[case](seed)
    except Exception:
        answer = {'error': traceback.format_exc()}
    print(MARK + json.dumps(answer), flush=True)


def measure(side: str, case: str, seed: int, timeout_s: float, home: Path = HERE) -> dict:
    """One measurement in a process group of its own, of which nothing is left afterwards."""
    env = {
        **os.environ,
        'PYTHONPATH': search_path(home),
        'RAY_worker_niceness': '0',
        'RAY_DEDUP_LOGS': '0',
        'PYTHONWARNINGS': 'ignore',
        **dict.fromkeys(THREAD_VARIABLES, '1'),
    }
    command = [sys.executable, str(home / 'parallel_bench.py'), '--serve', SIDES[side][0], case, str(seed)]
    with tempfile.TemporaryDirectory() as folder:
        started, wall, busy = time.time(), time.perf_counter(), _machine_busy_seconds()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            out, errors = '', f'no answer within {timeout_s:.0f} s'
        finally:
            _end(process)
    busy, wall = _machine_busy_seconds() - busy, time.perf_counter() - wall
    lines = [line for line in out.splitlines() if line.startswith(MARK)]
    record = json.loads(lines[-1][len(MARK) :]) if lines else {'error': errors[-3000:] or 'no result'}
    if 'at' in record:
        record['launch_s'] = record.pop('at') - started
    return {'side': side, 'case': case, 'seed': seed, 'machine_cores': busy / wall, **record}


def _end(process: subprocess.Popen) -> None:
    """SIGKILL to the group; Ray's own processes follow their driver."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def line_of(record: dict) -> str:
    """One measurement on one line."""
    if 'error' in record:
        return f'{record["case"]:<8} {record["side"]:<9} FAILED: {record["error"].strip().splitlines()[-1][:200]}'
    figures = ', '.join(f'{k} {v:.4g}' for k, v in record.items() if isinstance(v, (int, float)) and k != 'seed')
    return f'{record["case"]:<8} {record["side"]:<9} seed {record["seed"]}: {figures}'


def table(records: list[dict]) -> str:
    """Markdown: medians with (least-most), and nervex as a multiple of every peer."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for record in records:
        for figure, value in record.items():
            if isinstance(value, (int, float)) and record.get('solved', True):
                values.setdefault((record['side'], record['case'], figure), []).append(value)
    peers = [side for side in SIDES if any(r['side'] == side for r in records)]
    lines = ['| | ' + ' | '.join(peers) + ' | nervex as a multiple of |', '|---|' + '---:|' * len(peers) + '---|']
    for what, case, figure, unit, lower in ROWS:
        row, ratios = [], []
        ours = values.get(('nervex', case, figure))
        for side in peers:
            found = values.get((side, case, figure))
            row.append(
                ''
                if not found
                else f'{_shown(statistics.median(found))} ({_shown(min(found))}-{_shown(max(found))}; {len(found)})'
            )
            if found and ours and side != 'nervex':
                ratios.append(f'{side} {statistics.median(ours) / statistics.median(found):.2f}')
        if any(row):
            better = 'less' if lower else 'more'
            name = f'{what}, {unit} ({better} is better)' if unit else what
            lines.append(f'| {name} | ' + ' | '.join(row) + f' | {", ".join(ratios)} |')
    return '\n'.join(lines)


def _shown(number: float) -> str:
    return f'{number:,.0f}' if number >= 100 else f'{number:.3g}'


def scaling(records: list[dict]) -> str:
    """The env that sleeps: speed of 4 and 8 actors over that of one."""
    lines = []
    for side in SIDES:
        rate = {
            n: [r['per_s'] for r in records if r['side'] == side and r['case'] == f'sleep{n}' and 'per_s' in r]
            for n in (1, 4, 8)
        }
        if all(rate.values()):
            one, four, eight = (statistics.median(rate[n]) for n in (1, 4, 8))
            lines.append(f'{side} {four / one:.2f}x with 4, {eight / one:.2f}x with 8')
    return f'Env that sleeps, over one actor: {"; ".join(lines)}.' if lines else ''


def report(records: list[dict]) -> str:
    """The Markdown file."""
    versions = ', '.join(
        f'{name} {importlib.metadata.version(name)}'
        for name in ('torch', 'ray', 'gymnasium', 'stable-baselines3', 'numpy')
    )
    failures = [f'- {line_of(r)}' for r in records if 'error' in r or r.get('solved') is False]
    return '\n'.join(
        [
            '# parallel mode beside RLlib and bare Ray',
            '',
            f'{time.strftime("%Y-%m-%d %H:%M")}; {os.cpu_count()} cores ({platform.machine()}), '
            f'Python {platform.python_version()}; {versions}. One torch thread a process, RAY_worker_niceness=0. '
            f'The whole machine used {statistics.median(r["machine_cores"] for r in records):.2f} cores (median).',
            '',
            'Cells: median (least-most; measurements). "To 195": mean return of the last 100 episodes, counted alike '
            'on every side.',
            '',
            table(records),
            '',
            scaling(records),
            '',
            *(['Failed or not solved:', '', *failures, ''] if failures else []),
        ]
    )


def _missing(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except ModuleNotFoundError:
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--cases', nargs='+', choices=CASES, default=CASES)
    parser.add_argument('--only', nargs='+', choices=SIDES, default=list(SIDES))
    parser.add_argument('--timeout', type=float, default=240.0, help='seconds that one measurement may take')
    parser.add_argument('--keep', action='store_true', help='add to the measurements of raw/parallel.json')
    parser.add_argument('--out', type=Path, default=HERE / 'results')
    parser.add_argument('--serve', nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve(options.serve[0], options.serve[1], int(options.serve[2]))
        return
    raw = options.out / 'raw' / 'parallel.json'
    raw.parent.mkdir(parents=True, exist_ok=True)
    records = json.loads(raw.read_text(encoding='utf-8')) if options.keep and raw.exists() else []
    seen, order = len({r['seed'] for r in records}), random.Random(0)
    sides = [side for side in options.only if not _missing(SIDES[side][1])]
    for seed in range(seen, seen + options.rounds):
        for case in options.cases:
            for side in order.sample(sides, len(sides)):
                if case in SIDES[side][2]:
                    continue
                records.append(measure(side, case, seed, options.timeout))
                print(line_of(records[-1]), flush=True)
                raw.write_text(json.dumps(records, indent=1), encoding='utf-8')
    text = report(records)
    (options.out / 'parallel.md').write_text(text, encoding='utf-8')
    print(f'\n{text}')


if __name__ == '__main__':
    main()
