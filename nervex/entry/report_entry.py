"""Report mode: one page that tells what runs did, to be opened, sent and kept, without a network or scripts."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import glob
import os
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nervex.config.sections import not_by_default
from nervex.entry.plot_entry import Curve, band, band_name, group_runs, read_runs, unfailed
from nervex.entry.report_page import Line, chart, escape, legend, page, shown_number, split, table
from nervex.run.compare import comparison, readable, shown_return
from nervex.run.curve import best_return, run_curve
from nervex.run.folder import find_runs, reaching_out, read_yaml, saved_run, state_of_run
from nervex.run.progress import duration
from nervex.utils import NothingThereError
from nervex.utils.file_helper import atomic_write

_POINTS = 150  # of a line
_MOST_GROUPS = 12  # in the charts; the table has all
_LARGEST_FILM = 8_000_000  # bytes
_FAULT_LINES = 12  # of a run
_FAULT = re.compile(r'\bwarning\b|\berror\b|its fault number', re.I)  # in what a run prints
_NUMBER = re.compile(r' \(its fault number \d+\)')
_WARNING = re.compile(
    r'^\[([^]]*)\]\[(?:WARNING|ERROR|CRITICAL)\] (.*(?:\n(?!\[[^]]*\]\[[A-Z]+\] ).*)*)', re.M
)  # and what it logs
#: headline -> the names of the numbers below it; the first that fits
_CHARTS = (
    ('Episode lengths and win rates', r'.*/(length_mean|win_rate)$'),
    ('Returns while collecting', r'actor/return'),
    ('Losses', r'learner/.*loss'),
    ('Gradient norms', r'learner/.*grad'),
    ('Q values and values', r'learner/.*(q_|_q|q\d|value|target)'),
    ('More of the learner', r'learner/(?!updates_per_s)'),
    ('Buffer', r'buffer'),
    ('Speed', r'.*per_s$'),
    ('More', r'.*'),
)


def report(folders: Sequence[str], out: str = 'report.html', title: str | None = None) -> str:
    """
    Overview:
        Write one HTML page about runs: a line of each chart is a config, the mean over its seeds. What a run has
        logged is there; what it has not, such as a video, is left out.
    Arguments:
        - folders (:obj:`Sequence[str]`): of runs, of sweeps, or such that hold them
        - title (:obj:`str | None`): None: what the runs have in common
    Returns:
        - path (:obj:`str`): the file
    """
    paths = [path for folder in folders for path in _runs_of(folder)]
    groups = group_runs(read_runs([path for path in paths if run_curve(path)] or list(folders)))
    names = {curve.name for curves in groups.values() for curve in curves}
    title = title or (names.pop() if len(names) == 1 else 'Runs compared')
    numbers = {curve.folder: _numbers(curve.folder) for curves in groups.values() for curve in curves}
    parts = [
        f'<h1>{escape(title)}</h1>',
        *_results(groups),
        *_runs(paths),
        *_films(paths),
        *_charts(groups, numbers),
        *_times(groups, numbers),
        *_faults(paths),
        *_configs(groups),
    ]
    if os.path.dirname(out):
        os.makedirs(os.path.dirname(out), exist_ok=True)
    with atomic_write(out, 'w') as file:
        file.write(page(title, parts))
    return out


# ---- what there is ----
def _runs_of(folder: str) -> list[str]:
    """The runs in or below a folder, those of a sweep in its order."""
    if not os.path.isdir(folder):
        raise NothingThereError(f'{folder}: there is no such folder')
    if os.path.isfile(os.path.join(folder, 'sweep.yaml')):
        from nervex.entry.sweep_entry import Sweep

        sweep = Sweep(folder, trust=True)  # which is only read
        order = sweep.order()
        runs = sorted(sweep.runs, key=lambda run: order.index(run.number))
        return [run.folder for run in runs if os.path.isdir(run.folder)]
    return find_runs(folder)


def _numbers(run: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """All that a run has logged as numbers: name -> (env steps, values)."""
    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(run), 'log', '**', 'events.out.tfevents.*'), recursive=True)):
        for tag, step, value in _events(path):
            part, _, name = tag.partition('/')
            if name and not part.endswith('_iter') and part != 'evaluator' and part != 'evaluator_envstep':
                own = f'{part}/{name}, over rows sampled' if f'{part[7:]}_tb_logger' in path else f'{part}/{name}'
                found.setdefault(own.replace('_envstep/', '/'), []).append((step, value))
    rows = run_curve(run)
    for name in ('length_mean', 'win_rate'):
        if rows and rows[-1].get(name):
            found[f'evaluator/{name}'] = [(int(row['env_step']), float(row[name] or 'nan')) for row in rows]
    return {name: _thinned(np.array(pairs, float)) for name, pairs in found.items()}


def _events(path: str) -> Iterator[tuple[str, int, float]]:
    """(tag, step, value) of the numbers in a file of TensorBoard; the last one may be half written."""
    from tensorboardX.proto.event_pb2 import Event

    with open(path, 'rb') as file:
        while len(head := file.read(12)) == 12:
            data = file.read(struct.unpack_from('<Q', head)[0] + 4)
            with contextlib.suppress(Exception):  # of a damaged record
                event = Event.FromString(data[:-4])
                numbers = [v for v in event.summary.value if v.HasField('simple_value')]
                yield from ((v.tag, event.step, v.simple_value) for v in numbers)


def _thinned(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One value for each step, and so many as a line needs: means."""
    steps, which = np.unique(pairs[:, 0], return_inverse=True)
    means = np.stack([steps, np.bincount(which, pairs[:, 1]) / np.bincount(which)], axis=1)
    if len(means) > 2 * _POINTS:
        means = np.stack([part.mean(0) for part in np.array_split(means, _POINTS)])
    return means[:, 0], means[:, 1]


# ---- the parts of the page ----
def _line(n: int, label: str, curves: Sequence[Curve]) -> Line:
    return Line(n, label, *band(unfailed(curves)), [(curve.x, curve.mean) for curve in curves])


def _results(groups: dict[str, list[Curve]]) -> Iterator[str]:
    """The learning curves, and the table of what they end with."""
    most = list(groups)[:_MOST_GROUPS]
    yield legend(most)
    stops = sorted({c.stop_val for curves in groups.values() for c in curves if c.stop_val is not None})
    lines = [_line(n, label, groups[label]) for n, label in enumerate(most)]
    yield chart('Mean return of an evaluation, over env steps', lines, large=True, stops=stops)
    counts = sorted({len(unfailed(curves)) for curves in groups.values()} - {1})
    bands = ' or '.join(dict.fromkeys(map(band_name, counts)))
    said = [f'thick: the mean of the runs of a config, band: {bands}, thin: each run'] if counts else []
    said += [f'dashed: solved at {", ".join(f"{stop:g}" for stop in stops)}'] if stops else []
    said += [f'of {len(groups)} configs the first {len(most)} are drawn'] if len(groups) > len(most) else []
    yield f'<p class="soft">{escape("; ".join(said))}</p>' if said else ''
    rows = comparison([(label, [c.mean[-1] for c in unfailed(curves)]) for label, curves in groups.items()])
    for row, curves in zip(rows, groups.values()):
        states = Counter(curve.state for curve in curves if curve.state != 'finished')
        row['not finished'] = ', '.join(f'{n} {state}' for state, n in sorted(states.items()))
    head, *cells = readable(rows)
    yield '<h2>Final returns</h2>' + table(cells, ['config', *head[1:]])
    if any(len(unfailed(curves)) < len(curves) for curves in groups.values()):
        yield '<p class="soft">Means, bands and this table leave failed runs out.</p>'


def _runs(paths: Sequence[str]) -> Iterator[str]:
    """A row for each run."""
    rows = []
    for path in paths:
        state, seed = state_of_run(path) or 'has not begun', ''
        if state not in ('has not begun', 'damaged'):
            run = saved_run(path)
            state, seed = run.finished or state, str(run.seed)
        curve = run_curve(path)
        last: dict[str, Any] = curve[-1] if curve else {'env_step': 0, 'train_iter': 0, 'seconds': 0}
        reached = [shown_return(float(last['return_mean'])), shown_return(best_return(curve))] if curve else ['', '']
        at = [f'{int(last["env_step"]):,}', f'{int(last["train_iter"]):,}', _time(float(last['seconds']))]
        rows.append([os.path.relpath(path), state, seed, *at, *reached])
    yield '<h2>Runs</h2>' + table(rows, ['run', 'state', 'seed', 'env steps', 'updates', 'time', 'last', 'best'])


def _time(seconds: float) -> str:
    return f'{seconds:.1f} s' if seconds < 60 else duration(seconds)


def _films(paths: Sequence[str]) -> Iterator[str]:
    """The newest video of the first run that has one."""
    for path in paths:
        below = glob.glob(os.path.join(glob.escape(path), '**', '*'), recursive=True)
        films = [f for f in below if f.endswith(('.mp4', '.gif')) and os.path.getsize(f) <= _LARGEST_FILM]
        if films:
            film = max(films, key=os.path.getmtime)
            with open(film, 'rb') as file:
                data = base64.b64encode(file.read()).decode('ascii')
            yield f'<h2>Video</h2><p class="soft">{escape(os.path.relpath(film))}</p>'
            if film.endswith('.gif'):
                yield f'<img alt="an episode" src="data:image/gif;base64,{data}">'
            else:
                yield f'<video controls muted loop src="data:video/mp4;base64,{data}"></video>'
            return


def _charts(groups: dict[str, list[Curve]], numbers: dict[str, dict]) -> Iterator[str]:
    """A small chart for each logged number, under headlines; those that were logged once in a table."""
    most = dict(list(groups.items())[:_MOST_GROUPS])
    names = sorted({name for curves in most.values() for curve in curves for name in numbers[curve.folder]})
    once: list[list[str]] = []
    sections = []
    for headline, pattern in _CHARTS:
        charts = []
        for name in [name for name in names if re.match(pattern, name)]:
            names.remove(name)
            lines = list(_lines_of(name, most, numbers))
            if max(len(x) for line in lines for x, _ in line.runs) > 1:
                charts.append(chart(name, lines))
            else:
                values = {line.group: shown_number(float(np.mean([y[0] for _, y in line.runs]))) for line in lines}
                once.append([name, *(values.get(n, '') for n in range(len(most)))])
        if any(charts):
            body = f'<h2>{headline}</h2><div class="charts">{"".join(charts)}</div>'
            sections.append(f'<section class="s{min(len(charts), 3)}">{body}</section>')
    yield f'<div class="sections">{"".join(sections)}</div>'
    if once:
        head = ['number', *(most if len(most) > 1 else ['value'])]
        yield '<h2>Logged once</h2><p class="soft">the mean over the runs of a config</p>' + table(once, head)


def _lines_of(name: str, groups: dict[str, list[Curve]], numbers: dict[str, dict]) -> Iterator[Line]:
    for n, (label, curves) in enumerate(groups.items()):
        logged = [(curve, numbers[curve.folder][name]) for curve in curves if name in numbers[curve.folder]]
        own = [dataclasses.replace(curve, config={}, x=x, mean=y) for curve, (x, y) in logged]
        if own:
            meet = len(own) > 1 and max(c.x[0] for c in own) < min(c.x[-1] for c in own)
            line = _line(n, label, own if meet else own[:1])  # of runs without a common stretch there is no mean
            yield dataclasses.replace(line, runs=[(c.x, c.mean) for c in own])


def _times(groups: dict[str, list[Curve]], numbers: dict[str, dict]) -> Iterator[str]:
    """What the time of the runs went into, as far as their logs tell."""
    bars = []
    for label, curves in groups.items():
        parts: dict[str, float] = {}
        for curve in curves:
            for name, seconds in _time_of(curve.folder, numbers[curve.folder]):
                parts[name] = parts.get(name, 0.0) + seconds / len(curves)
        if parts:
            bars.append(f'<p>{escape(label)}</p>{split(list(parts.items()))}')
    if bars:
        yield '<h2>Time</h2><p class="soft">of a run, up to its last evaluation</p>' + ''.join(bars)


def _time_of(run: str, numbers: dict[str, tuple[np.ndarray, np.ndarray]]) -> list[tuple[str, float]]:
    last = (run_curve(run) or [{}])[-1]
    speeds = [numbers[name][1][-1] for name in ('actor/envsteps_per_s', 'learner/updates_per_s') if name in numbers]
    if not last or len(speeds) < 2:
        return []
    collecting, learning = int(last['env_step']) / speeds[0], int(last['train_iter']) / speeds[1]
    played = re.findall(r'episode_count (\d+),.*?avg_time_per_episode ([\d.]+)', _text(run, 'evaluator'))
    evaluating = sum(int(n) * float(seconds) for n, seconds in played)
    rest = max(float(last['seconds']) - collecting - learning - evaluating, 0.0)
    return [('collecting', collecting), ('learning', learning), ('evaluating', evaluating), ('the rest', rest)]


def _text(run: str, part: str) -> str:
    """The text logs of a part of a run."""
    text = ''
    for path in sorted(glob.glob(os.path.join(glob.escape(run), 'log', part, '**', '*_logger.txt'), recursive=True)):
        with open(path, encoding='utf-8', errors='replace') as file:
            text += file.read()
    return text


def _faults(paths: Sequence[str]) -> Iterator[str]:
    """What went wrong, and when, as the logs and the ends of the runs tell; the same is told once, with its count."""
    found = []
    for path in paths:
        facts = read_yaml(os.path.join(path, 'log', 'run.yaml')) if state_of_run(path) else {}
        told: dict[str, list[str]] = {}  # what -> when
        for when, what in sorted(dict.fromkeys(_told(path)), key=lambda one: one[0]):
            told.setdefault(_NUMBER.sub('', what), []).append(when)
        logged = '\n'.join(told)
        with contextlib.suppress(OSError), open(os.path.join(path, 'output.txt'), errors='replace') as file:
            for line in [_NUMBER.sub('', line.rstrip()) for line in file if _FAULT.search(line)]:
                if line.removeprefix('error: ') not in logged:
                    told.setdefault(line, []).append('')
        for name in ('error', 'diverged', 'events_failed'):
            if facts.get(name) and str(facts[name]) not in logged:
                told[f'{name}: {facts[name]}'] = ['']
        for what, times in list(told.items())[:_FAULT_LINES]:
            count = f' ({len(times)} times)' if len(times) > 1 else ''
            found.append([os.path.relpath(path), ' to '.join(sorted({times[0], times[-1]})), what + count])
        if len(told) > _FAULT_LINES:
            found.append([os.path.relpath(path), '', f'... and {len(told) - _FAULT_LINES} more'])
    yield '<h2>Faults</h2>' + (table(found, ['run', 'when', 'what']) if found else '<p>The logs tell of none.</p>')


def _told(run: str) -> Iterator[tuple[str, str]]:
    """(when, what) of the warnings and errors in the logs: their first line, and what a traceback ends with."""
    for when, text in _WARNING.findall(_text(run, '**')):
        lines = [line.strip() for line in text.splitlines() if line.strip()] or ['']
        yield when, ': '.join(dict.fromkeys((lines[0], lines[-1])))


def _configs(groups: dict[str, list[Curve]]) -> Iterator[str]:
    """What differs between the configs, what each has other than the defaults, and all of it."""
    firsts = {label: curves[0].config for label, curves in groups.items()}
    changed = {}
    for label, curves in groups.items():  # nothing foreign is imported
        config = read_yaml(os.path.join(curves[0].folder, 'log', 'config.yaml'))
        changed[label] = not_by_default(config, imports=not reaching_out(config))
    paths = sorted({path for own in changed.values() for path in own})
    rows = []
    for path in paths:
        default = str(next(own[path] for own in changed.values() if path in own))
        rows.append([path, default, *(str(config.get(path, '')) for config in firsts.values())])
    head = ['setting', 'default', *(firsts if len(firsts) > 1 else ['here'])]
    yield '<h2>Config</h2><p class="soft">what is not as by default</p>' + table(rows, head)
    for label, curves in groups.items():
        with open(os.path.join(curves[0].folder, 'log', 'config.yaml'), encoding='utf-8') as file:
            yield f'<details><summary>all of {escape(label)}</summary><pre>{escape(file.read())}</pre></details>'
