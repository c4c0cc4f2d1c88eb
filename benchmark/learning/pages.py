"""What was measured, as Markdown: ``docs/results.md``, and a table in the README of each app."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import picture
from records import Records
from rows import EPYMARL, NERVEX, SB3, SUITES, Row, readme_of

from nervex.run.compare import bootstrap_interval, iqm

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / 'docs'
COMMAND = 'python benchmark/learning/run.py'
MARKS = '<!-- results: written by benchmark/learning/run.py -->', '<!-- results: end -->'
FEW = 5  # seeds of a row whose runs are listed one by one
LAST = 3  # evaluations at the end of a curve whose mean is what was learned at last
CELLS = 'Cells: interquartile mean over seeds [its 95 % bootstrap interval], of few seeds mean (smallest to largest).'
HEAD = (
    '| config | holds | return | env steps | updates | wall s | processor s |',
    '|---|---|---:|---:|---:|---:|---:|',
)


def write(rows: Sequence[Row], records: Records) -> list[Path]:
    """All pages; answers what was written."""
    have = [(row, records.of(row)) for row in rows if records.of(row)]
    reached = [(row, runs) for row, runs in have if row.peer is None]
    compared = {peer: [(row, runs) for row, runs in have if row.peer == peer] for peer in BESIDE}
    missing = [(row.name, sum(not records.has(row, seed) for seed in row.seeds)) for row in rows]
    written = [_results_page(reached, compared, [(name, count) for name, count in missing if count])]
    for peer, pairs in compared.items():
        if pairs:
            written += picture.draw(pairs, DOCS / 'results', picture_of(peer))
    suites = [pair for pair in reached if pair[0] in SUITES]
    if suites:
        written += picture.draw(suites, DOCS / 'results', 'curves_suites', side_num=1)
    for readme in sorted({readme_of(row.config) for row, _ in have}):
        written.append(_readme(readme, [pair for pair in have if readme_of(pair[0].config) == readme]))
    return written


def _results_page(reached: list, compared: dict[str, list], missing: list[tuple[str, int]]) -> Path:
    text = [
        '# Results',
        '',
        f'Written by `{COMMAND}` (`make results`), which stores every finished run in `benchmark/learning/records/` '
        'and does only what is missing. '
        + conditions([run for pairs in (reached, *compared.values()) for _, runs in pairs for run in runs]),
        '',
        '## Reference problems',
        '',
        'A run ends when the mean return of an evaluation reaches `stop_val` (its win rate `stop_win_rate`) and an '
        'evaluation on other episodes confirms it. The return is the mean of the last evaluation. Cells: mean over '
        'seeds (smallest to largest). *holds*: whether the bound is kept by the mean of every seed.',
        '',
        *table(reached),
        '',
        *many_seeds(reached),
        *singles(reached),
    ]
    for peer, pairs in compared.items():
        if pairs:
            text += ['', *_comparison(peer, pairs)]
    if missing:
        told = ', '.join(f'`{name}` ({count} runs)' for name, count in missing)
        text += ['', '## Not measured yet', '', f'`make results` goes on with: {told}.']
    path = DOCS / 'results.md'
    path.write_text('\n'.join(text).rstrip() + '\n', encoding='utf-8')
    return path


def conditions(runs: list[dict]) -> str:
    """When and on what the runs were made."""
    dates, machines = sorted({r['date'] for r in runs}), sorted({r['machine'] for r in runs})
    versions = {f'{name} {version}' for r in runs for name, version in r['versions'].items()}
    when = dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'
    return (
        f'Measured {when} on {", ".join(machines)}, one thread a run, {", ".join(sorted(versions))}. Other work ran on '
        'the same cores, so wall time is an upper bound; processor time does not count what others used. Both include '
        'evaluations.'
    )


def table(pairs: list[tuple[Row, list[dict]]]) -> list[str]:
    """One line a row."""
    lines = list(HEAD)
    for row, runs in pairs:
        cells = [
            spread([run[key] for run in runs], few_digits(runs) if digits is None else digits)
            for key, digits in COLUMNS
        ]
        lines.append(f'| `{row.problem}` | {holds(row, runs)} | ' + ' | '.join(cells) + ' |')
    return lines


COLUMNS = (('final_return', None), ('env_steps', 0), ('updates', 0), ('wall_s', 1), ('cpu_s', 1))


def few_digits(runs: list[dict]) -> int:
    """Digits of returns: two where they are small, as goals reached are."""
    return 1 if max(abs(run['final_return']) for run in runs) >= 10 else 2


def singles(pairs: list[tuple[Row, list[dict]]]) -> list[str]:
    """Every run of the rows with few seeds, and the command that repeats it."""
    lines = ['Single runs:', '', '| command | seed | return | env steps | updates | wall s | processor s |', HEAD[1]]
    lines[-1] = '|---|---:|---:|---:|---:|---:|---:|'
    for row, runs in pairs:
        for run in runs if len(row.seeds) <= FEW else []:
            cells = [f'{run[key]:,.{few_digits([run]) if digits is None else digits}f}' for key, digits in COLUMNS]
            lines.append(f'| `{row.command()}` | {run["seed"]} | ' + ' | '.join(cells) + ' |')
    return lines


def many_seeds(pairs: list[tuple[Row, list[dict]]]) -> list[str]:
    """How often the rows with many seeds are solved, and how late at the latest."""
    rows = [(row, runs) for row, runs in pairs if len(row.seeds) > FEW]
    if not rows:
        return []
    head = ('config', 'seeds solved', 'median of env steps', 'most', 'most by median', 'command')
    lines = ['Seeds that no setting was tuned on:', '', f'| {" | ".join(head)} |', '|---|' + '---:|' * 4 + '---|']
    for row, runs in rows:
        steps = [run['env_steps'] for run in runs]
        median, solved = statistics.median(steps), sum(run['solved'] for run in runs)
        cells = [f'{solved} of {len(runs)}', f'{median:,.0f}', f'{max(steps):,}', f'{max(steps) / median:.1f}']
        seeds = f'{runs[0]["seed"]} to {runs[-1]["seed"]}'
        lines.append(f'| `{row.problem}` | {" | ".join(cells)} | `{row.command()}`, {seeds} |')
    return [*lines, '']


def spread(values: list[float], digits: int) -> str:
    """``mean (smallest to largest)``."""
    mean, low, high = (f'{v:,.{digits}f}' for v in (statistics.mean(values), min(values), max(values)))
    return mean if low == high else f'{mean} ({low} to {high})'


def summary(values: list[float], digits: int) -> str:
    """Of many seeds ``interquartile mean [its 95 % interval]``, of few ``mean (smallest to largest)``."""
    if len(values) <= FEW:
        return spread(values, digits)
    middle, low, high = (f'{v:,.{digits}f}' for v in (iqm(np.array(values)), *bootstrap_interval(values, iqm)))
    return f'{middle} [{low} to {high}]'


def holds(row: Row, runs: list[dict]) -> str:
    """What was asked of the row, and whether every run (the median, for env steps) did it."""
    asked, kept = [], True
    if row.at_least is not None:
        asked.append(f'>= {row.at_least:g}')
        kept &= all(run['final_return'] >= row.at_least for run in runs)
    if row.at_most is not None:
        asked.append(f'< {row.at_most:g}')
        kept &= all(run['final_return'] < row.at_most for run in runs)
    if row.win_rate is not None:
        rates = [run['win_rate'] for run in runs]
        asked.append(f'win rate {spread(rates, 2)} >= {row.win_rate:g}')
        kept &= min(rates) >= row.win_rate
    if row.median_steps is not None:
        asked.append(f'median <= {row.median_steps:,} steps')
        kept &= statistics.median(run['env_steps'] for run in runs) <= row.median_steps
    missing = '' if len(runs) == len(row.seeds) else f', {len(runs)} of {len(row.seeds)} seeds'
    return f'{"yes" if kept else "**no**"} ({", ".join(asked)}{missing})' if asked else ''


# ---- nervex beside its peers ----
BESIDE = {
    SB3: (
        'Stable-Baselines3',
        'SB3',
        'Both sides train with the hyper-parameters of RL Baselines3 Zoo: those of SB3 are read off the nervex config '
        '(`benchmark/learning/sb3_run.py`), with seeds, budget, env and evaluations alike: every so many env steps, '
        "ten greedy episodes. Rows that end in `zoo` have the Zoo's budgets as well, the others shorter ones.",
    ),
    EPYMARL: (
        'EPyMARL',
        'EPyMARL',
        'Cooperative navigation (simple_spread: 3 agents, 25 steps), each side with settings of its own: EPyMARL with '
        'those that it ships (`benchmark/learning/epymarl_run.py`), nervex with those of its configs. Evaluations are '
        '100 greedy episodes.',
    ),
}


def picture_of(peer: str) -> str:
    """Stem of the picture's files."""
    return 'curves' if peer == SB3 else f'curves_{peer}'


def area(run: dict) -> float:
    """Mean return over the whole run: the area under the learning curve by its length in env steps."""
    points = run['history']
    total = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))
    return total / (points[-1][0] - points[0][0])


def last(run: dict) -> float:
    """Mean return of the last evaluations."""
    return statistics.mean(mean for _, mean in run['history'][-LAST:])


def best(run: dict) -> float:
    """The best evaluation."""
    return max(mean for _, mean in run['history'])


def _comparison(peer: str, compared: list[tuple[Row, list[dict]]]) -> list[str]:
    name, short, how = BESIDE[peer]
    whats = {'area': area, 'last': last, 'best': best, 'processor s': _cpu}
    sides = ((NERVEX, NERVEX), (peer, short))
    text = [
        f'## Beside {name}',
        '',
        f'{how} *Area*: mean return over the whole run, which is high when learning is early; '
        f'*last*: mean of the last {LAST} evaluations. {CELLS}',
        '',
        f'![learning curves](results/{picture_of(peer)}.png)',
        '',
        'Mean of the seeds, and the range from the lowest to the highest.',
        '',
        '| config | env steps | seeds | '
        + ' | '.join(f'{what}: {label}' for what in whats for _, label in sides)
        + ' |',
        '|---|' + '---:|' * (2 + 2 * len(whats)),
    ]
    for problem in dict.fromkeys(row.problem for row, _ in compared):
        found = {row.side: runs for row, runs in compared if row.problem == problem}
        cells = [
            summary([what(run) for run in found[side]], 1) if side in found else ''
            for what in whats.values()
            for side, _ in sides
        ]
        steps = max(run['env_steps'] for runs in found.values() for run in runs)
        counts = ', '.join(str(len(found.get(side, []))) for side, _ in sides)
        text.append(f'| `{problem}` | {steps:,} | {counts} | ' + ' | '.join(cells) + ' |')
    rows = [(row, runs) for row, runs in compared if row.side == NERVEX]
    text += solved(peer, compared)
    text += ['', 'Commands of the nervex runs:', '', *(f'- `{row.command()}`' for row, _ in rows)]
    return text


def solved(peer: str, compared: list[tuple[Row, list[dict]]]) -> list[str]:
    """How many seeds of each side learned what is asked, where something is."""
    runs_of = {(row.problem, row.side): runs for row, runs in compared}
    bounds = {row.problem: row.at_least for row, _ in compared if row.at_least is not None}
    if not bounds:
        return []
    short = BESIDE[peer][1]
    lines = ['', 'Seeds that reach the return at which Gymnasium calls the env solved:', '']
    lines += [
        f'| config | bound | last: nervex | last: {short} | best: nervex | best: {short} |',
        '|---|' + '---:|' * 5,
    ]
    for problem, bound in bounds.items():
        cells = []
        for what in (last, best):
            for side in (NERVEX, peer):
                runs = runs_of.get((problem, side), [])
                cells.append(f'{sum(what(run) >= bound for run in runs)} of {len(runs)}' if runs else '')
        lines.append(f'| `{problem}` | {bound:g} | {" | ".join(cells)} |')
    return lines


def _cpu(run: dict) -> float:
    return run['cpu_s']


# ---- READMEs ----
def _readme(path: Path, pairs: list[tuple[Row, list[dict]]]) -> Path:
    """Replace what stands between the marks, or what the section ``## Results`` holds."""
    runs = [run for _, runs in pairs for run in runs]
    reached = [(row, runs) for row, runs in pairs if row.peer is None]
    compared = [(row, runs) for row, runs in pairs if row.peer is not None]
    text = [f'By `{COMMAND}`. {conditions(runs)}', '']
    if reached:
        text += ['Cells: mean over seeds (smallest to largest).', '', *table(reached), '', *many_seeds(reached)]
        text += [*singles(reached), '']
    if compared:
        names = dict.fromkeys(BESIDE[row.peer][0] for row, _ in compared)
        text += [
            f'Beside {" and ".join(names)}, see `docs/results.md`. {CELLS}',
            '',
            '| config | side | seeds | env steps | area under the curve | last | best | wall s | processor s |',
            '|---|---|---|---:|---:|---:|---:|---:|---:|',
        ]
        for row, found in compared:
            cells = [
                f'{max(run["env_steps"] for run in found):,}',
                *(summary([what(run) for run in found], 1) for what in (area, last, best)),
                *(summary([run[key] for run in found], 1) for key in ('wall_s', 'cpu_s')),
            ]
            seeds = ', '.join(str(run['seed']) for run in found) if len(found) <= FEW else f'{len(found)}'
            text.append(f'| `{row.problem}` | {row.side} | {seeds} | ' + ' | '.join(cells) + ' |')
        text += ['', f'For example `{compared[0][0].command()}`.', '']
    body = '\n'.join([MARKS[0], '', *text]).rstrip() + f'\n\n{MARKS[1]}\n'
    page = path.read_text(encoding='utf-8')
    if MARKS[0] in page:
        before, rest = page.split(MARKS[0], 1)
        page = before + body + rest.split(MARKS[1], 1)[1].lstrip('\n')
    else:
        page = re.split(r'^## Results$', page, maxsplit=1, flags=re.M)[0].rstrip() + '\n\n## Results\n\n' + body
    path.write_text(page, encoding='utf-8')
    return path
