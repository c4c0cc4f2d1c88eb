"""What a person sees while a run goes on: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nervex.run.serial_run import SerialRun

logger = logging.getLogger(__name__)
_REFRESH_S = 0.25  # between two redraws of the live line
_PLAIN_LINE_S = 10.0  # between two plain lines without an evaluation


def harmless() -> contextlib.AbstractContextManager:
    """Around output that nobody may be there to take: a closed pipe, a full disk or a lost terminal ends nothing."""
    return contextlib.suppress(OSError, ValueError)


class Progress:
    """
    Overview:
        Env steps, updates, speed, last and best return, and the time left to the step limit. Output that cannot be
        written is left out.
    Arguments:
        - enabled (:obj:`bool`): False prints nothing
        - total_log (:obj:`bool`): also show the log lines of all workers, on stderr
    """

    def __init__(self, run: SerialRun, enabled: bool, total_log: bool = False) -> None:
        self._run, self._enabled = run, enabled
        self._start = self._last = time.perf_counter()
        self._steps_before = run.actor.total_step  # by the run that this one continues
        self._live: Any = None
        self._handler: logging.Handler | None = None
        with harmless():
            if enabled and sys.stdout is not None and sys.stdout.isatty():
                from rich.live import Live

                self._live = Live('', refresh_per_second=4, transient=False)
                self._live.start()
        if total_log:
            self._handler = logging.StreamHandler()
            logging.getLogger('nervex').addHandler(self._handler)
            logging.getLogger('nervex').setLevel(logging.INFO)

    def update(self) -> None:
        """Called once a round; draws when it is time to."""
        wait = _REFRESH_S if self._live is not None else _PLAIN_LINE_S
        if self._enabled and time.perf_counter() - self._last >= wait:
            self.evaluated()

    def evaluating(self) -> None:
        """An evaluation begins: said on the live line, and where lines are plain for the first one."""
        text = f'evaluating the policy after {self._run.learner.train_iter:,} updates ...'
        if self._live is not None:
            self._live.update(f'{self.line()} | {text}')
        elif not self._run.evaluator.history:
            self.say(text)

    def evaluated(self) -> None:
        """Draw now: a new evaluation is worth a line of its own where lines are plain."""
        if self._enabled:
            self._last = time.perf_counter()
            if self._live is not None:
                self._live.update(self.line())
            else:
                self.say(self.line())

    def say(self, text: str) -> None:
        """A line of its own."""
        with harmless():
            if self._live is not None:
                self._live.console.print(text)
            elif self._enabled:
                print(text, flush=True)

    def line(self) -> str:
        """The line itself."""
        run = self._run
        seconds = max(time.perf_counter() - self._start, 1e-9)
        steps = run.actor.total_step
        speed = (steps - self._steps_before) / seconds
        text = f'env steps {steps:,} | updates {run.learner.train_iter:,} | {speed:,.0f} steps/s'
        text += self.returns()
        limit = run.commander.limit
        if limit is not None and speed:
            text += f' | at most {duration(max(limit - steps, 0) / speed)} left'
        return text

    def returns(self) -> str:
        """The last and the best return, as a part of the line."""
        last, best = self._run.evaluator.last_mean, self._run.evaluator.best
        if last != last:  # NaN before the first evaluation
            return ''
        stop = self._run.cfg.evaluator.stop_val
        return f' | return {last:.1f} (best {max(best, last):.1f}' + (
            f', stop at {stop:g})' if stop is not None else ')'
        )

    def close(self) -> None:
        """Leave the last line on the terminal."""
        if self._live is not None:
            self._live.update(self.line())
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


def say_building(enabled: bool, cfg: Any) -> None:
    """The first sign of life of a run: what is built takes a while."""
    if enabled:
        env = cfg.env.get('env_id') or cfg.env.get('env_type') or 'the env'
        with harmless():
            print(f'building {cfg.policy.get("policy_type") or "the policy"} for {env} ...', flush=True)
