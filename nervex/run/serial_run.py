"""One serial run: the steps of its loop, its checkpoints and its complete state."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from easydict import EasyDict

from nervex.run.folder import RunFolder
from nervex.run.progress import Progress
from nervex.run.result import RunResult
from nervex.run.signals import StopSignals
from nervex.run.state import (
    SaveSchedule,
    load_random_state,
    newest_state,
    random_state,
    restore_state,
    save_state,
)
from nervex.utils import EnvError

logger = logging.getLogger(__name__)


@dataclass
class Parts:
    """What ``build_serial`` wired together; ``stack`` closes all of it."""

    policy: Any
    learner: Any
    actor: Any
    evaluator: Any
    buffer: Any
    commander: Any
    folder: RunFolder
    stack: contextlib.ExitStack


class SerialRun:
    """
    Overview:
        The workers of a serial run and what one round of it does; a context manager that closes all of them.
    """

    def __init__(self, cfg: EasyDict, seed: int, parts: Parts) -> None:
        self.cfg, self.seed, self.folder = cfg, seed, parts.folder
        self.policy, self.learner, self.actor = parts.policy, parts.learner, parts.actor
        self.evaluator, self.buffer, self.commander = parts.evaluator, parts.buffer, parts.commander
        self.exp_path = parts.folder.path
        self.solved = False
        self._resumed = False
        self._before_evaluation: tuple | None = None  # what an evaluation may change, while it is under way
        self._advice_at: float = 250 * self.actor.env.env_num
        self.seconds_before = 0.0  # of the run that this one continues
        self._start = time.perf_counter()
        self._stack = parts.stack
        self._schedule = SaveSchedule(cfg.learner.resume.interval_s, cfg.learner.resume.max_cost)
        self.signals = StopSignals()
        self.show(False)

    def __enter__(self) -> SerialRun:
        self._stack.callback(self.signals.close)
        self.signals.install()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.close()

    def show(self, progress: bool, total_log: bool = False) -> None:
        """Whether a person watches: a progress line, and the log lines of all workers."""
        self.progress = Progress(self, progress, total_log)
        self._stack.callback(self.progress.close)

    @property
    def seconds(self) -> float:
        """Time spent on this run, with what came before a resume."""
        return self.seconds_before + time.perf_counter() - self._start

    # ---- the steps of the loop ----
    def begin(self) -> None:
        """Hooks before the run; a resumed run had them."""
        if not self._resumed:
            self.learner.call_hook('before_run')

    def going_on(self) -> bool:
        """
        Overview:
            Asked between two rounds: whether there is another one. Saves the complete state when it is time to, and at
            a wish to stop, which then ends the run by KeyboardInterrupt.
        """
        stop = self.signals.stop_wanted
        if stop or self._schedule.due():
            started = time.monotonic()
            with self.signals.held():
                save_state(self)
            self._schedule.saved(started)
        if stop:
            raise KeyboardInterrupt
        return not self.commander.out_of_budget()

    def evaluate(self) -> bool:
        """Evaluate; keep a checkpoint of a new best; answer whether the run is solved."""
        self._before_evaluation = self.policy.run_state_dict(), random_state(), _judged(self.evaluator)
        self.solved, _ = self.evaluator.eval(self.learner.train_iter, envstep=self.actor.total_step)
        self._before_evaluation = None
        if self.evaluator.is_new_best():
            with self.signals.held():
                self.learner.save_checkpoint()
                self.learner.save_checkpoint('ckpt_best.pth.tar')
        self.progress.evaluated()
        return self.solved

    def collect(self) -> None:
        """Collect until the buffer holds enough rows for the next round of updates."""
        while True:
            try:
                data, _ = self.actor.generate_data(self.learner.train_iter)
            except EnvError:
                self.learner.check_finite()  # a policy that has become NaN acts so: then that is the cause to tell
                raise
            self.buffer.push_data(data)
            self.progress.update()
            if self.actor.total_step >= self._advice_at:
                self._advise()
            if self.policy.may_learn(self.buffer, self.learner.train_iter):
                return

    def _advise(self) -> None:
        """Say once which kind of env manager suits the step time that was measured."""
        text = self.actor.env.advice() if hasattr(type(self.actor.env), 'advice') else None
        if text is None:
            self._advice_at *= 2
            return
        self._advice_at = float('inf')
        logger.info(text)
        self.progress.say(text)

    def batches(self) -> Iterator[Any]:
        """The batches of one round of updates."""
        return self.policy.batches(self.buffer, self.learner.train_iter)

    def train(self, batch: Any) -> None:
        """One update, and its priorities back into the buffer."""
        self.signals.hold()
        self.learner.train(batch, self.actor.total_step)
        if self.learner.priority_info is not None and self.cfg.policy.use_priority:
            self.buffer.update(self.learner.priority_info)
        self.signals.release()

    # ---- the end ----
    def finish(self) -> RunResult:
        """Hooks after the run, which save the last checkpoint; note how the run ended."""
        with self.signals.held():
            self.learner.call_hook('after_run')
            self.folder.finish('solved' if self.solved else 'limit reached')
        return self.result()

    def interrupted(self) -> KeyboardInterrupt:
        """
        Overview:
            Save the checkpoint of a run that is stopped; the exception carries its path. An evaluation that was cut
            short is taken back, so that the complete state can be saved, too: the resumed run begins with it.
        """
        with self.signals.held():
            before, self._before_evaluation = self._before_evaluation, None
            if before is not None and before[2] == _judged(self.evaluator):
                self.policy.load_run_state_dict(before[0])
                load_random_state(before[1])
                save_state(self)
            self.learner.call_hook('after_run')
        return KeyboardInterrupt(self.learner.last_checkpoint)

    def result(self) -> RunResult:
        """Counters and paths, for the caller."""
        return RunResult.of(self, self.solved, self.learner.ckpt_path, self.learner.last_checkpoint)

    # ---- resume ----
    def resume(self) -> bool:
        """
        Overview:
            Go on from the newest complete state in the checkpoint folder. Without any, the run begins anew from its
            seed, which gives the same results.
        Returns:
            - found (:obj:`bool`): whether there was a state
        """
        path, state = newest_state(self.learner.ckpt_path)
        if state is None:
            logger.warning('%s: no saved state yet; the run begins anew from its seed', self.learner.ckpt_path)
            return False
        restore_state(self, state)
        self._resumed = True
        logger.info(
            '%s: the run goes on at update %d, env step %d', path, self.learner.train_iter, self.actor.total_step
        )
        return True


def _judged(evaluator: Any) -> dict[str, Any]:
    """What the evaluator knows, but the time."""
    return {key: value for key, value in evaluator.state_dict().items() if key != 'seconds'}
