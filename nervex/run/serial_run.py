"""One serial run: the steps of its loop, its checkpoints and its complete state."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from typing import Any

from nervex.run.folder import RunFolder
from nervex.run.launch import Launch
from nervex.run.life import RunLife
from nervex.run.progress import Progress
from nervex.run.result import RunResult
from nervex.run.state import changed_by_evaluating, restore_state, save_state
from nervex.utils import CheckpointError, EnvError, TrainingError

logger = logging.getLogger(__name__)
LONG_ROUND_S = 15.0  # of updates, until a line says that the round goes on


class SerialRun(RunLife):
    """
    Overview:
        The workers of a serial run and what one round of it does; a context manager that closes all of them.
    Arguments:
        - launch (:obj:`Launch`): what is to run
        - folder (:obj:`RunFolder`): where it writes
        - stack (:obj:`ExitStack`): closes everything that was built
        - workers: policy, learner, actor, evaluator, buffer and commander
    """

    policy: Any
    learner: Any
    actor: Any
    evaluator: Any
    buffer: Any
    commander: Any
    mode, collects = 'serial', True

    def __init__(self, launch: Launch, folder: RunFolder, stack: contextlib.ExitStack, **workers: Any) -> None:
        super().__init__(launch, stack)
        self.data, self.folder, self.exp_path = launch.passed.data, folder, folder.path
        vars(self).update(workers)
        folder.events.follow(self.actor, self.learner)
        self.solved = self._resumed = False
        self._before: dict[str, Any] | None = None  # what the newest evaluation changed, up to the next step
        self.show(False)

    def __exit__(self, kind: Any = None, error: Any = None, trace: Any = None) -> None:
        if isinstance(error, TrainingError):
            self.folder.note(diverged=str(error))
        super().__exit__(kind, error, trace)

    def show(self, progress: bool, total_log: bool = False) -> None:
        """Whether a person watches: a progress line, and the log lines of all workers."""
        self.progress = Progress(self, progress, total_log)
        self.stack.callback(self.progress.close)

    # ---- the steps of the loop ----
    def begin(self) -> None:
        """Hooks before the run; a resumed run had them."""
        if self.collects and self.policy.no_own_data is not None:
            why = self.policy.no_own_data
            logger.warning('%s: %s; nervex -m offline --data FOLDER', type(self.policy).__name__, why)
        if not self._resumed:
            self.learner.begin()

    def save(self) -> None:
        """Everything that the rest of the run depends on."""
        save_state(self)

    def going_on(self) -> bool:
        """Asked between two rounds: whether there is another one. Saves when it is time to."""
        self.save_in_time()
        return not self.commander.out_of_budget()

    def evaluate(self) -> bool:
        """Evaluate, unless the config has none; keep a checkpoint of a new best; answer whether the run is solved."""
        if self.cfg.evaluator.eval_freq is None:
            return False
        self.actor.settle()
        self._before = changed_by_evaluating(self)
        self.progress.evaluating()
        self.solved, _ = self.evaluator.eval(self.learner.train_iter, envstep=self.actor.total_step)
        if self.evaluator.is_new_best():
            with self.signals.held():
                self.learner.save_checkpoint()
                self.learner.save_checkpoint('ckpt_best.pth.tar')
        self.progress.evaluated()
        return self.solved

    def collect(self) -> None:
        """Collect until the buffer holds enough rows for the next round of updates."""
        self._before = None
        while True:
            try:
                data, _ = self.actor.generate_data(self.learner.train_iter)
            except EnvError:
                self.learner.check_weights()  # a policy that has become NaN acts so: then that is the cause to tell
                raise
            self.buffer.push_data(data)
            if self.folder.events.hearing:
                self.folder.events.round()
            if time.perf_counter() >= self.progress.due:
                self.progress.evaluated()
            if self.policy.may_learn(self.buffer, self.learner.train_iter):
                return

    def batches(self) -> Iterator[Any]:
        """The batches of one round of updates. Nothing else happens meanwhile, so one that takes long says so."""
        self._before = None
        first, start = self.learner.train_iter, time.perf_counter()
        until = start + LONG_ROUND_S
        for batch in self.policy.batches(self.buffer, first):
            yield batch
            now = time.perf_counter()
            if now >= self.progress.due:
                self.progress.evaluated()
            if now > until:
                logger.warning(
                    'this round has taken %.0f s for %d updates, and goes on; evaluations, saved states and the limits '
                    'of the run wait for its end: see policy.learn.train_step and policy.learn.epochs',
                    now - start,
                    self.learner.train_iter - first,
                )
                until = start + 4 * (now - start)

    def train(self, batch: Any) -> None:
        """One update, and its priorities back into the buffer."""
        signals = self.signals
        signals.holds += 1
        self.learner.train(batch, self.actor.total_step)
        if self.learner.priority_info is not None and self.cfg.policy.use_priority:
            self.buffer.update(self.learner.priority_info)
        signals.holds -= 1
        if signals.overdue:
            signals.give_way()

    # ---- the end ----
    def finish(self) -> RunResult:
        """
        Overview:
            Hooks after the run, which save the last checkpoint; note how the run ended. The complete state is saved as
            it was before the last evaluation, so that the run can go on exactly if its limits are raised.
        """
        with self.signals.held():
            self.learner.call_hook('after_run')
            if self._schedule.enabled:
                try:
                    save_state(self, self._before)
                except CheckpointError as e:  # the run has its result all the same
                    logger.warning('with raised limits the run can go on from an earlier moment only: %s', e)
            result = RunResult.of(self, self.solved, self.learner.ckpt_path, self.learner.last_checkpoint)
            self.folder.ended(result)
        return result

    def interrupted(self) -> KeyboardInterrupt:
        """
        Overview:
            Save the checkpoint of a run that is stopped; the exception carries its path. An evaluation that was cut
            short is taken back, so that the complete state can be saved, too: the resumed run begins with it.
        """
        with self.signals.held():
            if self._before is not None:
                save_state(self, self._before)
            self.learner.call_hook('after_run')
        return KeyboardInterrupt(self.learner.last_checkpoint)

    def resume(self, state: dict[str, Any], new_rates: bool = False) -> None:
        """Go on from a complete state; with ``new_rates`` by the config's learning rates, not by those that it has."""
        rates = [group['lr'] for group in self.policy._param_groups]
        restore_state(self, state)
        if new_rates:
            for group, rate in zip(self.policy._param_groups, rates):
                group['lr'] = rate
            self.save()
        self.folder.count_resumes(True)
        self._resumed = True
        logger.info('the run goes on at update %d, env step %d', self.learner.train_iter, self.actor.total_step)
