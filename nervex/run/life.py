"""What the runs of all modes have in common: their time, their signals, and that they close what they were built of."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from nervex.run.launch import Launch
from nervex.run.signals import StopSignals
from nervex.run.state import SaveSchedule


class RunLife:
    """
    Overview:
        A run as a context manager, within which it has the signals and after which all is closed.
    Arguments:
        - launch (:obj:`Launch`): what is to run
        - stack (:obj:`ExitStack`): closes everything that is built
        - patience_s (:obj:`float`): of a signal, for the end of a round
    """

    def __init__(self, launch: Launch, stack: contextlib.ExitStack, patience_s: float = 2.0) -> None:
        self.cfg, self.seed, self.stack = launch.cfg, launch.seed, stack
        self.seconds_before = 0.0  # of the run that this one continues
        self._start = time.perf_counter()
        self._schedule = SaveSchedule(self.cfg.learner.resume.interval_s, self.cfg.learner.resume.max_cost)
        self.signals = StopSignals(patience_s)
        stack.callback(self.signals.close)

    def __enter__(self) -> Any:
        self.signals.install()
        return self

    def __exit__(self, kind: Any = None, error: Any = None, trace: Any = None) -> None:
        self.signals.be_patient()
        self.stack.__exit__(kind, error, trace)

    @property
    def seconds(self) -> float:
        """Time spent on this run, with what came before a resume."""
        return self.seconds_before + time.perf_counter() - self._start

    def save(self) -> None:
        """Write the complete state."""
        raise NotImplementedError

    def save_in_time(self) -> None:
        """Save when it is time to, and at a wish to stop, which then ends the run by KeyboardInterrupt."""
        stop = self.signals.stop_wanted
        if stop or self._schedule.due():
            started = time.monotonic()
            with self.signals.held():
                self.save()
            self._schedule.took(time.monotonic() - started)
        if stop:
            raise KeyboardInterrupt
