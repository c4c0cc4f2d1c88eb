"""Sweeps: the runs of several settings and seeds, each in a process and a folder of its own, below one folder."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hmac
import itertools
import json
import os
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click

from nervex.config import compile_config
from nervex.config.save import config_text, nameless
from nervex.entry.sweep_processes import on_ray, start_process
from nervex.run.compare import comparison, readable
from nervex.run.curve import run_curve
from nervex.run.folder import free_folders, leave_folder, names_in, own_folder, read_yaml, state_of_run
from nervex.run.progress import duration, harmless, live_picture
from nervex.utils import CheckpointError, ConfigError, ExtraMissingError
from nervex.utils.config_helper import load_yaml
from nervex.utils.file_helper import atomic_write
from nervex.utils.log_helper import pretty_table
from nervex.utils.trust import UntrustedError, signature

PLAN = 'sweep.yaml'
AUTO = 'sweeps/{env}_{policy}'
_MOST_RUNS = 10_000
_POLL_S, _SCREEN_S, _PLAIN_LINES_S = 0.2, 1.0, 30.0
_BEST = 10  # settings in the picture of a search


# ---- what a sweep is made of ----
@dataclasses.dataclass
class Plan:
    """
    Overview:
        What a sweep is made of; ``sweep.yaml`` holds it, with this user's signature. A setting is a value, as it is
        written on the command line, for each path.
    """

    grid: dict[str, list[str]]  # path -> the values, or the range, that are tried
    seeds: list[int]
    override: list[str]  # for all runs
    jobs: int
    config: dict[str, Any]
    modules: list[str]  # folders of modules that it names
    ray: bool = False
    address: str | None = None
    optuna: int | None = None  # how many settings a search tries; None: all of the grid
    trials: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # of a search so far

    def settings(self) -> list[dict[str, str]]:
        """All of them, so far."""
        if self.optuna is not None:
            return [trial['setting'] for trial in self.trials]
        return [dict(zip(self.grid, values)) for values in itertools.product(*self.grid.values())]

    def label(self, setting: dict[str, str]) -> str:
        """A setting in words."""
        ends = [path.rpartition('.')[2] for path in self.grid]
        names = {path: end if ends.count(end) == 1 else path for path, end in zip(self.grid, ends)}
        return ', '.join(f'{names[path]}={value}' for path, value in setting.items()) or 'all'

    def overrides(self, setting: dict[str, str]) -> list[str]:
        """Of a run with this setting."""
        return [*self.override, *(f'{path}={value}' for path, value in setting.items())]

    def save(self, folder: str) -> None:
        """Write it, signed where there is a place for a key."""
        text, signed = config_text(dataclasses.asdict(self)), None
        with contextlib.suppress(OSError):
            signed = signature(text.encode()).hex()
        with atomic_write(os.path.join(folder, PLAN), 'w') as file:
            file.write(f'{text}signed: {signed}\n')

    @classmethod
    def read(cls, folder: str, trust: bool) -> Plan:
        """Of a sweep that goes on; its config may name code to run, so that it has to be this user's, or trusted."""
        path = os.path.join(folder, PLAN)
        facts = read_yaml(path)
        with open(path, encoding='utf-8') as file:
            text = file.read().rpartition('signed:')[0]
        signed = str(facts.pop('signed', None))
        if not trust and not hmac.compare_digest(signed.encode(), signature(text.encode()).hex().encode()):
            raise UntrustedError(
                f'{path}: you have not signed it (it was changed, or another user, machine or version made it), and a '
                'sweep runs whatever code it names; --trust goes on with it'
            )
        try:
            return cls(**facts)
        except TypeError as e:
            raise CheckpointError(f'{path}: is no description of a sweep ({e})') from e


def seed_list(text: str) -> list[int]:
    """``0-9`` or ``0,3,7``, or both."""
    seeds: list[int] = []
    for part in text.split(','):
        given = re.fullmatch(r'\s*(\d{1,10})\s*(?:-\s*(\d{1,10})\s*)?', part)
        low, high = (int(given[1]), int(given[2] or given[1])) if given else (1, 0)
        if not low <= high < 2**31:
            raise click.UsageError(f'--seeds: got {text!r}; write 0-9, or 0,3,7: numbers from 0 to 2147483647')
        if high - low >= _MOST_RUNS:
            raise click.UsageError(f'--seeds: {text!r} are more than {_MOST_RUNS:,} runs')
        seeds += range(low, high + 1)
    if len(set(seeds)) < len(seeds):
        raise click.UsageError(f'--seeds: {text!r} has a seed twice')
    return seeds


def grid_of(texts: Sequence[str]) -> dict[str, list[str]]:
    """What several ``-g path=value,value`` mean: the values of each path, as they are written."""
    grid: dict[str, list[str]] = {}
    for text in texts:
        path, sign, written = (part.strip() for part in text.partition('='))
        values = _split(written)
        if not (path and sign and values and all(values)):
            raise click.UsageError(f'-g {text!r}: write path=value,value, e.g. policy.learn.learning_rate=1e-4,3e-4')
        if path in grid:
            raise click.UsageError(f'-g {path}: is given twice; write all its values in one')
        if path in ('seed', 'exp_name'):
            raise click.UsageError(f'-g {path}: every run has its own; seeds are given by --seeds 0-9')
        if len({json.dumps(load_yaml(value), default=str) for value in values}) < len(values):
            raise click.UsageError(f'-g {text!r}: has a value twice')
        grid[path] = values
    return grid


def _split(written: str) -> list[str]:
    """At the commas that are not inside of a value."""
    values, value = [], ''
    for part in written.split(','):
        value = f'{value},{part}' if value else part.strip()
        with contextlib.suppress(ConfigError):
            load_yaml(value)
            values.append(value)
            value = ''
    return [*values, value] if value else values


def begin_sweep(plan: Plan, out: str | None) -> str:
    """
    Overview:
        Check all settings, before anything starts, and make the folder. What is wrong is a UsageError of one line.
    """
    if any(text.partition('=')[0].strip() == 'exp_name' for text in plan.override):
        raise click.UsageError('-o exp_name: every run has its own folder, below that of the sweep, --out')
    settings = plan.settings()
    if plan.optuna is not None:
        from nervex.entry.sweep_search import Search

        settings = Search(plan).ends()
    if (count := (plan.optuna or len(settings)) * len(plan.seeds)) > _MOST_RUNS:
        raise click.UsageError(f'{count:,} runs are more than {_MOST_RUNS:,}')
    for path in nameless(plan.config):
        raise click.UsageError(f'{path}: no other process can import what stands there; write it in a module')
    for setting in settings:
        try:
            compiled = compile_config(plan.config, overrides=plan.overrides(setting), needs_env=True)
        except ConfigError as e:
            raise click.UsageError('; '.join(e.problems)) from e
    env, policy = names_in(compiled)
    folder = next(free_folders(out or AUTO, PLAN, env=env, policy=policy))
    if os.path.isdir(folder) and os.listdir(folder):
        a_sweep = os.path.exists(os.path.join(folder, PLAN))
        hint = f'; nervex resume {shlex.quote(folder)} goes on with it' if a_sweep else ''
        raise click.UsageError(f'--out {folder}: holds {"a sweep" if a_sweep else "something"} already{hint}')
    os.makedirs(folder, exist_ok=True)
    plan.save(folder)
    return folder


# ---- the runs ----
@dataclasses.dataclass(eq=False)
class Run:
    """One of a sweep; ``state`` is waiting, running, finished, failed, stopped or pruned."""

    folder: str
    number: int  # of its setting
    seed: int
    state: str = 'waiting'
    error: str = ''
    process: Any = None

    @property
    def curve(self) -> list[dict[str, str]]:
        """Its evaluations."""
        return run_curve(self.folder)

    @property
    def output(self) -> str:
        """What it prints."""
        return os.path.join(self.folder, 'output.txt')

    def last_line(self, begins: str = '') -> str:
        """The newest one that it has printed, of those that begin so."""
        with contextlib.suppress(OSError), open(self.output, 'rb') as file:
            file.seek(max(0, os.path.getsize(self.output) - 4000))
            lines = file.read().decode(errors='replace').split('\n')
            return next((x.strip() for x in reversed(lines) if x.strip() and x.startswith(begins)), '')
        return ''

    def progress(self) -> str:
        """The newest line that tells how far it is."""
        return self.last_line('env steps') or 'starts'


class Sweep:
    """
    Overview:
        The runs of a folder that has a plan. Those that are finished stay as they are, those that were stopped, killed
        or have failed go on where they were, the others begin.
    Arguments:
        - folder (:obj:`str`): the folder
        - jobs (:obj:`int | None`): how many at once; None: as the plan has it
        - trust (:obj:`bool`): run the code that it names, though it is not from this user
    Interfaces:
        carry_out, table, failures, draw
    """

    def __init__(self, folder: str, jobs: int | None = None, trust: bool = False) -> None:
        self.folder, self._trust = folder, trust
        self.plan = Plan.read(folder, trust)
        self._jobs = jobs or self.plan.jobs
        self.runs: list[Run] = []
        self._search: Any = None  # Optuna's part, while the sweep goes on
        self._searches = self.plan.optuna is not None
        for number in range(len(self.plan.settings())):
            self._add(number)
        if not self._searches:  # the first seed of every setting, then the second
            self.runs.sort(key=lambda run: self.plan.seeds.index(run.seed))

    def _add(self, number: int) -> None:
        settings = self.plan.settings()
        names = [re.sub(r'[^\w.=-]+', '-', self.plan.label(setting).replace(', ', '_')) for setting in settings]
        own = names[number] if len(names[number]) <= 80 and names.count(names[number]) == 1 else f'setting_{number:03d}'
        name = f'trial_{number:03d}' if self._searches else own if self.plan.grid else ''
        for seed in self.plan.seeds:
            run = Run(os.path.join(self.folder, f'{name}_s{seed}'.strip('_')), number, seed)
            if state_of_run(run.folder) == 'finished':
                run.state = 'finished'
            elif self._searches and self.plan.trials[number]['pruned']:
                run.state = 'pruned'
            self.runs.append(run)

    # ---- carrying out ----
    def carry_out(self) -> None:
        """All runs; a wish to stop stops all of them first, resumably."""
        lock = own_folder(self.folder)
        with contextlib.ExitStack() as stack:
            stack.callback(leave_folder, self.folder, lock)
            with atomic_write(os.path.join(self.folder, 'config.yaml'), 'w') as file:
                file.write(config_text(self.plan.config))
            if self._searches:
                from nervex.entry.sweep_search import Search

                self._search = Search(self.plan)
            start: Any = on_ray(self.plan.address, self._jobs, stack) if self.plan.ray else start_process
            screen = Screen(self)
            stack.callback(screen.close)
            try:
                while self._begin(start, screen) or self._running():
                    time.sleep(_POLL_S)
                    self._look(screen)
            except BaseException:
                self._stop_all()
                raise

    def _running(self) -> list[Run]:
        return [run for run in self.runs if run.state == 'running']

    def _next(self) -> Run | None:
        """The run to begin now; of a search perhaps one of a new setting."""
        found = next((run for run in self.runs if run.state == 'waiting'), None)
        if found is None and self._search is not None and (number := self._search.ask(self.runs)) is not None:
            self.plan.save(self.folder)
            self._add(number)
            return self.runs[-len(self.plan.seeds)]
        return found

    def _begin(self, start: Any, screen: Screen) -> bool:
        """As many as there is room for; whether one has begun."""
        begun = False
        while len(self._running()) < self._jobs and (run := self._next()) is not None:
            run.process = start(self._arguments(run), run.output, self.plan.modules)
            run.state, begun = 'running', True
            screen.tell(run)
        return begun

    def _arguments(self, run: Run) -> list[str]:
        if state_of_run(run.folder):  # where it is damaged, going on with it tells how
            return ['resume', run.folder, *(['--trust'] if self._trust else [])]
        setting = self.plan.settings()[run.number]
        overrides = [*self.plan.overrides(setting), f'exp_name={json.dumps(run.folder)}']
        given = [word for text in overrides for word in ('-o', text)]
        return ['train', os.path.join(self.folder, 'config.yaml'), '-s', str(run.seed), *given]

    def _look(self, screen: Screen) -> None:
        """At those that go on."""
        for run in self._running():
            code = run.process.poll()
            if code is not None:
                self._ended(run, code)
                screen.tell(run)
            elif self._search is not None and run.seed == self.plan.seeds[0] and self._search.hopeless(run):
                self.plan.save(self.folder)
                for other in (other for other in self.runs if other.number == run.number):
                    if other.state == 'running':
                        other.process.terminate()
                    elif other.state == 'waiting':
                        other.state = 'pruned'
        screen.update()

    def _ended(self, run: Run, code: int) -> None:
        pruned = self._searches and self.plan.trials[run.number]['pruned']
        run.state = 'finished' if state_of_run(run.folder) == 'finished' else 'pruned' if pruned else 'failed'
        if run.state == 'failed':
            run.error = f'killed by signal {-code}' if code < 0 else run.last_line() or f'exit code {code}'

    def _stop_all(self) -> None:
        """Each saves its state; a second Ctrl-C does not wait for that."""
        running = self._running()
        try:
            for run in running:
                run.process.terminate()
            while any(run.process.poll() is None for run in running):
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            for run in running:
                run.process.kill()
        click.echo(f'to go on: nervex resume {shlex.quote(self.folder)}', err=True)

    # ---- what came out ----
    def failures(self) -> list[str]:
        """A line for each run that has failed."""
        return [f'{run.folder}: {run.error}' for run in self.runs if run.state == 'failed']

    def order(self) -> list[int]:
        """The numbers of the settings; in a search the best ones first."""
        numbers = list(range(len(self.plan.settings())))
        finals = {n: self._finals(n) for n in numbers}
        if self._searches:
            numbers.sort(key=lambda n: -sum(finals[n]) / len(finals[n]) if finals[n] else float('inf'))
        return numbers

    def _finals(self, number: int, column: str = 'return_mean') -> list[float]:
        """Of the last evaluations of the finished runs with a setting."""
        runs = [run for run in self.runs if run.number == number and run.state == 'finished']
        return [float(run.curve[-1][column]) for run in runs if run.curve]

    def table(self) -> str:
        """The settings and their results; written to ``results.csv``, too."""
        order, settings = self.order(), self.plan.settings()
        rows = comparison([(self.plan.label(settings[n]), self._finals(n)) for n in order])
        for n, row in zip(order, rows):
            steps, states = self._finals(n, 'env_step'), [run.state for run in self.runs if run.number == n]
            row['env steps'] = round(sum(steps) / len(steps)) if steps else ''
            row['not finished'] = ', '.join(f'{states.count(s)} {s}' for s in sorted({*states} - {'finished'}))
        with atomic_write(os.path.join(self.folder, 'results.csv'), 'w') as file:
            table = csv.DictWriter(file, rows[0], lineterminator='\n')
            table.writeheader()
            table.writerows(rows)
        return pretty_table(readable(rows))

    def draw(self) -> str:
        """The learning curves; of a search those of the best settings. Answers a line that tells where they are."""
        from nervex.entry.plot_entry import plot

        shown = self.order()[: _BEST if self._searches else None]
        folders = [r.folder for n in shown for r in self.runs if r.number == n and r.state == 'finished' and r.curve]
        try:
            return f'curves:  {", ".join(plot(folders, os.path.join(self.folder, "curves")))}' if folders else ''
        except ExtraMissingError as e:
            return str(e)


class Screen:
    """What a person sees of a sweep: all runs that go on, on a terminal; plain lines elsewhere."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._live = live_picture(auto_refresh=False, transient=True)
        self._start = self._last = time.monotonic()

    def tell(self, run: Run) -> None:
        """A run has begun or ended."""
        more = ''
        if run.state == 'failed':
            more = f', {run.error}'
        elif rows := run.curve:
            more = f', {int(rows[-1]["env_step"]):,} env steps, return {float(rows[-1]["return_mean"]):.1f}'
        with harmless():
            print(f'{self._count()} {os.path.basename(run.folder)}: {run.state}{more}', flush=True)

    def _count(self) -> str:
        runs, plan = self._sweep.runs, self._sweep.plan
        done = sum(run.state not in ('running', 'waiting') for run in runs)
        return f'[{done}/{(plan.optuna or 0) * len(plan.seeds) or len(runs)}]'

    def update(self) -> None:
        """Draw if it is time to."""
        now = time.monotonic()
        if now - self._last < (_PLAIN_LINES_S if self._live is None else _SCREEN_S):
            return
        self._last = now
        running = [run for run in self._sweep.runs if run.state == 'running']
        with harmless():
            if self._live is None:
                for run in running:
                    print(f'{os.path.basename(run.folder)}: {run.progress()}', flush=True)
                return
            from rich.table import Table

            table = Table(title=f'{self._sweep.folder} {self._count()} {duration(now - self._start)}', expand=True)
            table.add_column('run', overflow='fold')
            table.add_column('says', no_wrap=True, ratio=1)
            for run in running:
                table.add_row(os.path.basename(run.folder), run.progress())
            self._live.update(table, refresh=True)

    def close(self) -> None:
        """Take the picture away."""
        if self._live is not None:
            with harmless():
                self._live.stop()


def sweep_lines(sweep: Sweep) -> Iterator[str]:
    """Carry out a sweep, then tell what came out."""
    sweep.carry_out()
    yield sweep.table()
    if failed := sweep.failures():
        yield from ('failed (nervex resume tries again):', *(f'  {line}' for line in failed))
    yield f'results: {os.path.join(sweep.folder, "results.csv")}'
    yield sweep.draw()
