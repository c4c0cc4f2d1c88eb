"""What happens in a run, told to those that ``events`` of the config names: TensorBoard, files, other trackers."""

from __future__ import annotations

import csv
import json
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from nervex.utils import EVENT_REGISTRY, NervexError
from nervex.utils.declare import settings
from nervex.utils.file_helper import naming
from nervex.utils.log_helper import LISTENERS, TBLogger

logger = logging.getLogger(__name__)


class EventError(NervexError, RuntimeError):
    """One of the ``events`` of a config could not begin."""


@dataclass(frozen=True)
class RunStart:
    """The run that begins, or goes on: its folder, its complete config in plain values, a name that no other has."""

    folder: str
    config: dict[str, Any]
    name: str
    resumed: bool


class EventSink:
    """
    Overview:
        Somebody who is told what happens in a run: override what is of interest, declare settings in ``config``, and
        register the class in ``EVENT_REGISTRY``. What ``on_start`` raises ends the run before it begins; what the
        others raise is told in a warning and in ``run.yaml``, and the sink hears nothing more of this run.
    Interfaces:
        on_start, on_round, on_log, on_eval, on_checkpoint, on_end
    """

    config = settings()
    replaces_parts = False  # the parts of the run write no TensorBoard files of their own beside this sink

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        self.cfg = cfg

    def on_start(self, run: RunStart) -> None:
        """The run begins, or goes on."""

    def on_round(self, env_step: int, train_iter: int) -> None:
        """Something was collected; updates follow."""

    def on_log(self, values: Mapping[str, Any], env_step: int, train_iter: int) -> None:
        """A part of the run logs numbers, such as ``learner/total_loss``; ``[histogram]name`` and the like are more."""

    def on_eval(self, values: Mapping[str, float], env_step: int, train_iter: int) -> None:
        """An evaluation: ``return_mean``, ...; by default it is logged, as ``evaluator/return_mean``, ..."""
        self.on_log({f'evaluator/{name}': value for name, value in values.items()}, env_step, train_iter)

    def on_checkpoint(self, path: str, env_step: int, train_iter: int) -> None:
        """A checkpoint was written."""

    def on_end(self, state: str, facts: Mapping[str, Any]) -> None:
        """The run is 'finished', 'interrupted' or 'failed': the counters of its result, or its ``error``."""


class Events:
    """
    Overview:
        The sinks of one run, which hear of it in turn. From ``start`` to ``end`` the loggers that this process has
        made below ``log`` are heard, too.
    Arguments:
        - cfg (:obj:`Mapping`): ``events`` of the config: settings of sinks, by the names of these
        - log (:obj:`str`): the run's folder of logs
    Interfaces:
        follow, start, round, log, eval, checkpoint, end
    """

    def __init__(self, cfg: Mapping[str, Mapping[str, Any]], log: str) -> None:
        self._sinks: dict[str, EventSink] = {name: EVENT_REGISTRY.get(name)(own) for name, own in cfg.items()}
        self.hearing: list[str] = []  # who was told of the start, and has not failed
        self._actor: Any = None
        self._learner: Any = None
        self._log = os.path.abspath(log)
        self.failed: dict[str, str] = {}
        self.own_files = not any(sink.replaces_parts for sink in self._sinks.values())
        if self._sinks:
            LISTENERS[self._log] = self

    def follow(self, actor: Any, learner: Any) -> None:
        """Whose ``total_step`` and ``train_iter`` say where the run stands."""
        self._actor, self._learner = actor, learner

    def start(self, run: RunStart) -> None:
        """
        Overview:
            Tell that it begins: the first sink that cannot is an EventError, and a new run ends there. One that goes on
            is not lost to a tracker that is away: it goes on without.
        """
        for name, sink in self._sinks.items():
            self.hearing.append(name)
            if run.resumed:
                self._call_one(name, 'on_start', run)
                continue
            try:
                sink.on_start(run)
            except Exception as e:
                self.hearing.remove(name)
                if isinstance(e, NervexError):
                    raise
                raise EventError(f'events.{name}: cannot begin: {_in_a_line(e)}') from e

    def round(self) -> None:
        """Something was collected."""
        self._tell('on_round')

    def log(self, values: Mapping[str, Any]) -> None:
        """A logger's values."""
        self._tell('on_log', values)

    def eval(self, values: Mapping[str, float]) -> None:
        """An evaluation's."""
        self._tell('on_eval', values)

    def checkpoint(self, path: str) -> None:
        """A checkpoint was written."""
        self._tell('on_checkpoint', path)

    def told(self, events: Iterable[tuple[Any, ...]]) -> None:
        """What a ``Relay`` has taken down in another process."""
        for method, *arguments in events:
            self._call(method, *arguments)

    def end(self, state: str, facts: Mapping[str, Any]) -> None:
        """Tell how it ended, and hear no more."""
        if LISTENERS.get(self._log) is self:
            del LISTENERS[self._log]
        self._call('on_end', state, facts)
        self.hearing.clear()

    def _tell(self, method: str, *what: Any) -> None:
        stands = (0, 0) if self._actor is None else (self._actor.total_step, self._learner.train_iter)
        self._call(method, *what, *stands)

    def _call(self, method: str, *arguments: Any) -> None:
        for name in list(self.hearing):
            self._call_one(name, method, *arguments)

    def _call_one(self, name: str, method: str, *arguments: Any) -> None:
        try:
            getattr(self._sinks[name], method)(*arguments)
        except Exception as e:  # a tracker may raise anything, and no run is worth less than its log
            self.hearing.remove(name)
            self.failed[name] = f'{method}: {_in_a_line(e)}'
            text = 'events.%s: %s raised %s; it is told nothing more of this run, which goes on'
            logger.warning(text, name, method, _in_a_line(e), exc_info=True)


class Relay:
    """
    Overview:
        Hears in another process of the run what loggers below ``log`` write there, and keeps it until it is taken.
    Arguments:
        - stands (:obj:`Callable`): answers env steps and updates of the run
    Interfaces:
        take, close
    """

    def __init__(self, cfg: Mapping[str, Any], log: str, stands: Callable[[], tuple[int, int]]) -> None:
        self._kept: deque[tuple[Any, ...]] = deque()  # which one thread fills while another one takes
        self._log, self._stands = os.path.abspath(log), stands
        self.own_files = not any(EVENT_REGISTRY.get(name).replaces_parts for name in cfg)
        if cfg:
            LISTENERS.setdefault(self._log, self)  # of a run in one process, its events hear it

    def log(self, values: Mapping[str, Any]) -> None:
        """A logger's values."""
        self._kept.append(('on_log', dict(values), *self._stands()))

    def checkpoint(self, path: str) -> None:
        """A checkpoint was written."""
        self._kept.append(('on_checkpoint', path, *self._stands()))

    def take(self) -> list[tuple[Any, ...]]:
        """What ``Events.told`` takes, since the last time."""
        return [self._kept.popleft() for _ in range(len(self._kept))]

    def close(self) -> None:
        """Hear no more."""
        if LISTENERS.get(self._log) is self:
            del LISTENERS[self._log]


def _in_a_line(error: Exception) -> str:
    return ' '.join(f'{type(error).__name__}: {error}'.split())


# ---- files ----
class TensorBoard(EventSink):
    """One entry a run, in ``log`` itself; each number once, against env steps."""

    replaces_parts = True

    def on_start(self, run: RunStart) -> None:
        """Files are made with the first event."""
        self._tb = TBLogger(os.path.join(run.folder, 'log'), None)

    def on_log(self, values: Mapping[str, Any], env_step: int, train_iter: int) -> None:
        """Numbers in one event, others in one each."""
        self._tb.add_values({name: value for name, value in values.items() if not name.startswith('[')}, env_step)
        for name, value in values.items():
            if name.startswith('['):
                self._tb.add_val(name, value, env_step)

    def on_end(self, state: str, facts: Mapping[str, Any]) -> None:
        """Close the files."""
        self._tb.close()


class _TextFile(EventSink):
    """A text file in ``log``, on disk when a method returns: what a resumed run takes back is cut off there, too."""

    name = ''

    def on_start(self, run: RunStart) -> None:
        """Open the file, which a resumed run goes on with."""
        self._path = os.path.join(run.folder, 'log', self.name)
        self._file: IO[str] = open(self._path, 'a', buffering=1, newline='', encoding='utf-8')  # noqa: SIM115

    def on_end(self, state: str, facts: Mapping[str, Any]) -> None:
        """Close it."""
        self._file.close()


class JsonLines(_TextFile):
    """All events as lines of JSON in ``log/events.jsonl``."""

    name = 'events.jsonl'

    def on_start(self, run: RunStart) -> None:
        """The first line."""
        super().on_start(run)
        self._write('start', name=run.name, resumed=run.resumed)

    def on_log(self, values: Mapping[str, Any], env_step: int, train_iter: int) -> None:
        """A line of numbers."""
        self._write('log', env_step=env_step, train_iter=train_iter, values=numbers(values))

    def on_eval(self, values: Mapping[str, float], env_step: int, train_iter: int) -> None:
        """A line of numbers."""
        self._write('eval', env_step=env_step, train_iter=train_iter, values=numbers(values))

    def on_checkpoint(self, path: str, env_step: int, train_iter: int) -> None:
        """A line with the path."""
        self._write('checkpoint', env_step=env_step, train_iter=train_iter, path=path)

    def on_end(self, state: str, facts: Mapping[str, Any]) -> None:
        """The last line."""
        self._write('end', state=state, **facts)
        super().on_end(state, facts)

    def _write(self, event: str, **facts: Any) -> None:
        with naming(self._path):
            self._file.write(json.dumps({'event': event, **facts}) + '\n')


class Csv(_TextFile):
    """All numbers in ``log/events.csv``, one a row: env_step, train_iter, name, value."""

    name = 'events.csv'

    def on_log(self, values: Mapping[str, Any], env_step: int, train_iter: int) -> None:
        """Some rows, behind the head of the file."""
        with naming(self._path):
            table = csv.writer(self._file)
            if not self._file.tell():
                table.writerow(['env_step', 'train_iter', 'name', 'value'])
            table.writerows([env_step, train_iter, name, value] for name, value in numbers(values).items())


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Those that are one number, as floats."""
    return {name: float(value) for name, value in values.items() if not name.startswith('[')}
