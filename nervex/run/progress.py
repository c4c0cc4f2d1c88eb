"""What a person sees while a run goes on: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nervex.run.serial_run import SerialRun

_REFRESH_S = 0.25  # between two redraws of the live line
_PLAIN_LINE_S = 10.0  # between two plain lines without an evaluation


def harmless() -> contextlib.AbstractContextManager:
    """Around output that nobody may be there to take: a closed pipe, a full disk or a lost terminal ends nothing."""
    return contextlib.suppress(OSError, ValueError)


def live_picture(*shown: Any, **how: Any) -> Any:
    """The ``Live`` of rich, begun, on a terminal; None elsewhere."""
    with harmless():
        if sys.stdout is not None and sys.stdout.isatty():
            from rich.live import Live

            live = Live(*shown, **how)
            live.start()
            return live
    return None


class Progress:
    """
    Overview:
        Env steps, updates, speed, last and best return, and the time left to the step limit. Output that cannot be
        written is left out.
    Arguments:
        - enabled (:obj:`bool`): False prints nothing
        - total_log (:obj:`bool`): also show the log lines of all workers, on stderr
    Interfaces:
        due, update, evaluating, evaluated, say, line, parts, returns, close
    """

    def __init__(self, run: SerialRun, enabled: bool, total_log: bool = False) -> None:
        self._run, self._enabled = run, enabled
        self._start = time.perf_counter()
        self._steps_before = run.actor.total_step  # by the run that this one continues
        self._live: Any = live_picture('', refresh_per_second=4, transient=False) if enabled else None
        self._handler = logging.StreamHandler() if total_log else None
        if self._handler is not None:
            logging.getLogger('nervex').addHandler(self._handler)
            logging.getLogger('nervex').setLevel(logging.INFO)
        self.due = self._next()  # on the clock of time.perf_counter

    def _next(self) -> float:
        wait = _PLAIN_LINE_S if self._live is None else _REFRESH_S
        return time.perf_counter() + wait if self._enabled else float('inf')

    def update(self) -> None:
        """Draw if it is time to."""
        if time.perf_counter() >= self.due:
            self.evaluated()

    def evaluating(self) -> None:
        """An evaluation begins: said on the live line, and where lines are plain for the first one."""
        text = f'evaluating the policy after {self._run.learner.train_iter:,} updates ...'
        if self._live is not None:
            self._draw((0, ' | evaluating ...'))
        elif not self._run.evaluator.history:
            self.say(text)

    def evaluated(self) -> None:
        """Draw now: a new evaluation is worth a line of its own where lines are plain."""
        self.due = self._next()
        if self._live is not None:
            self._draw()
        elif self._enabled:
            self.say(self.line())

    def say(self, text: str) -> None:
        """A line of its own."""
        with harmless():
            if self._live is not None:
                self._live.console.print(text)
            elif self._enabled:
                print(text, flush=True)

    def _draw(self, *more: tuple[int, str]) -> None:
        """The live line, which has one row."""
        from rich.text import Text

        line = self.line(self._live.console.width, *more)
        self._live.update(Text(line, no_wrap=True, overflow='ellipsis'))

    def line(self, width: int | None = None, *more: tuple[int, str]) -> str:
        """The line itself; of one that is wider than ``width`` the least important parts are left out."""
        parts = [*self.parts(), *more]
        while (text := ''.join(part for _, part in parts)) and width is not None and len(text) > width:
            least = max(rank for rank, _ in parts)
            if least == 0:
                break
            parts = [part for part in parts if part[0] < least]
        return text

    def parts(self) -> Iterator[tuple[int, str]]:
        """The parts of the line, each behind its rank: the highest is the least important."""
        run, steps = self._run, self._run.actor.total_step
        speed = (steps - self._steps_before) / max(time.perf_counter() - self._start, 1e-9)
        yield 0, f'env steps {steps:,}'
        yield 5, f' | updates {run.learner.train_iter:,}'
        yield 4, f' | {speed:,.0f} steps/s'
        yield from self.returns()
        limit = run.commander.limit
        if limit is not None and speed and limit > steps:
            yield 2, f' | at most {duration((limit - steps) / speed)} left'

    def returns(self) -> Iterator[tuple[int, str]]:
        """The last and the best return and the last win rate, as parts of the line."""
        last, best = self._run.evaluator.last_mean, self._run.evaluator.best
        if last != last:  # NaN before the first evaluation
            return
        cfg, won = self._run.cfg.evaluator, self._run.evaluator.last_win_rate
        wanted, part = (f', stop at {x:g}' if x is not None else '' for x in (cfg.stop_val, cfg.stop_win_rate))
        yield from ((1, f' | return {last:.1f}'), (3, f' (best {max(best, last):.1f}'), (6, wanted), (3, ')'))
        if won is not None:
            yield from ((2, f' | win rate {won:.2f}'), (6, part))

    def close(self) -> None:
        """Leave the last line on the terminal."""
        if self._live is not None:
            self._draw()
            with harmless():
                self._live.stop()
            self._live = None
        if self._handler is not None:
            logging.getLogger('nervex').removeHandler(self._handler)
            self._handler = None


def duration(seconds: float) -> str:
    """Seconds as 45s, 3m 20s or 2h 5m."""
    s = int(seconds)
    if s < 60:
        return f'{s}s'
    return f'{s // 60}m {s % 60}s' if s < 3600 else f'{s // 3600}h {s % 3600 // 60}m'
