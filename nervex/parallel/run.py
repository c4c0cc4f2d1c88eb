"""One parallel run: what is built in the process that the user started, and its beginning and end."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from dataclasses import dataclass
from typing import Any

from easydict import EasyDict

from nervex.config import compile_config, save_config
from nervex.parallel.carrier import Carrier
from nervex.parallel.coordinator import Coordinator
from nervex.parallel.pace import Overlap, Rounds
from nervex.parallel.plan import make_plan
from nervex.parallel.report import CommanderLog, ParallelProgress, verdict
from nervex.parallel.role import RoleSpec
from nervex.parallel.roster import Roster, Slot
from nervex.parallel.saved_states import KEPT_LOGS, sizes_of_saved_logs
from nervex.parallel.tally import Tally
from nervex.run.build import EVALUATION_SEED_OFFSET, EnvSetting, policy_class
from nervex.run.folder import RunFolder, check_same_run, saved_run
from nervex.run.result import RunResult
from nervex.run.signals import StopSignals
from nervex.run.state import cut_logs, log_sizes
from nervex.utils import COMM_ACTOR_REGISTRY, COMM_LEARNER_REGISTRY, COMMANDER_REGISTRY
from nervex.utils.file_helper import remove_unfinished
from nervex.utils.import_helper import import_modules
from nervex.utils.log_helper import build_logger
from nervex.worker.actor import BaseSerialEvaluator
from nervex.worker.learner.checkpoints import Checkpoints

_CLOSE_S = 60.0  # for the last checkpoint
_INTERRUPT_S = 3.0  # and after Ctrl-C
_INCARNATIONS = 1000  # numbers of incarnations that one process may use


@dataclass(frozen=True)
class Passed:
    """What a caller passes beside the config."""

    env_setting: EnvSetting | None = None
    policy: Any = None
    model: Any = None


class ParallelRun:
    """
    Overview:
        The coordinator with everything around it; a context manager that ends all roles.
    Arguments:
        - resumed (:obj:`int`): how often the run was resumed, 0 for a new one
        - started (:obj:`float`): when it was asked for, on the clock of ``time.perf_counter``
    """

    def __init__(
        self,
        cfg: EasyDict,
        seed: int,
        folder: RunFolder,
        ckpt_path: str,
        passed: Passed,
        carrier: Carrier,
        resumed: int,
        started: float,
    ) -> None:
        self._start, self._seconds_before = started, 0.0
        self.cfg, self.seed, self.folder, self.exp_path = cfg, seed, folder, os.path.abspath(folder.path)
        self._ckpt_path, self._passed, self._resumed = ckpt_path, passed, resumed
        self._stack = contextlib.ExitStack()
        self.signals = StopSignals()
        self._stack.callback(self.signals.close)  # last: a second Ctrl-C is to cut the end short too
        self._stack.callback(folder.close)
        self._stack.callback(carrier.close)
        self.plan = plan = make_plan(cfg, passed.env_setting)
        self.tally = self.actor = self.learner = Tally()
        self._log, _ = build_logger(folder.log, 'coordinator', need_tb=False)
        self._stack.callback(self._log.close)
        self.evaluator = BaseSerialEvaluator(cfg.evaluator, folder.path, seed=seed + EVALUATION_SEED_OFFSET)
        self._stack.callback(self.evaluator.close)
        command = policy_class(cfg, passed.policy)(cfg.policy, enable_field=('command',)).command_mode
        self.commander = COMMANDER_REGISTRY.get(cfg.parallel.commander_type)(
            cfg.commander, self.tally, self.tally, self.evaluator, None, command
        )
        self.commander_log = CommanderLog(self, *build_logger(os.path.join(folder.log, 'commander'), 'commander'))
        self._stack.callback(self.commander_log.close)
        pace = Rounds(plan) if plan.rounds else Overlap(plan, cfg.parallel, carrier.measures)
        self.roster = Roster(carrier, cfg.parallel, self._log.info, self._on_lost, self._renewed)
        self.coordinator = Coordinator(
            cfg, plan, self.roster, self.commander, self.evaluator, pace, self.tally, self._log.info, self._notes
        )  # fmt: skip
        self.coordinator.on_evaluation = lambda result: (self.commander_log.write(), self.progress.evaluated())
        self.coordinator.on_resumed = self._resumed_from
        self.show(False)

    def __enter__(self) -> ParallelRun:
        self.signals.install()
        return self

    def __exit__(self, kind: Any = None, error: Any = None, trace: Any = None) -> None:
        self.signals.be_patient()
        if error is not None and not isinstance(error, KeyboardInterrupt):
            self._log.info(f'the run ended with {kind.__name__}: {str(error).strip()}')
        self._stack.close()

    def show(self, progress: bool, total_log: bool = False) -> None:
        """Whether a person watches."""
        self.progress = ParallelProgress(self, progress, total_log)
        self._stack.callback(self.progress.close)

    @property
    def seconds(self) -> float:
        """Time spent on this run, with what came before a resume."""
        return self._seconds_before + time.perf_counter() - self._start

    def _notes(self) -> dict[str, Any]:
        """What a later process must know, beside the counters."""
        return {
            'seconds': self.seconds,
            'commander': self.commander.state_dict(),
            'log_sizes': log_sizes(self.folder.log),
        }

    def _resumed_from(self, notes: dict[str, Any]) -> None:
        self._seconds_before = notes['seconds']
        self.commander.load_state_dict(notes.get('commander', {}))

    # ---- roles ----
    def begin(self) -> None:
        """Start all roles at once."""
        parallel, plan = self.cfg.parallel, self.plan
        actor = COMM_ACTOR_REGISTRY.get(parallel.comm_actor_type)
        evaluator = COMM_ACTOR_REGISTRY.get(parallel.comm_evaluator_type)
        learner = COMM_LEARNER_REGISTRY.get(parallel.comm_learner_type)
        gpus = parallel.resources.learner.num_gpus
        learner_resources = {
            **parallel.resources.learner,
            'num_gpus': int(self.cfg.policy.use_cuda) if gpus is None else gpus,
        }
        for kind, count, role, resources in (
            ('learner', plan.learners, learner, learner_resources),
            ('actor', plan.actors, actor, dict(parallel.resources.actor)),
            ('evaluator', plan.evaluators, evaluator, dict(parallel.resources.evaluator)),
        ):
            for index in range(count):
                self.roster.add(self._spec(kind, index, count), role, resources)

    def _spec(self, kind: str, index: int, count: int) -> RoleSpec:
        return RoleSpec(
            kind=kind,
            index=index,
            incarnation=self._resumed * _INCARNATIONS,
            count=count,
            cfg=self.cfg,
            seed=self.seed,
            exp_path=self.exp_path,
            envs=self.plan.envs_per_actor,
            env_setting=self._passed.env_setting,
            policy=self._passed.policy,
            model=self._passed.model,
            ckpt_path=self._ckpt_path,
            resume_iter=0 if self._resumed and kind == 'learner' else None,
        )

    def _renewed(self, slot: Slot) -> RoleSpec:
        spec = dataclasses.replace(slot.spec, incarnation=slot.spec.incarnation + 1)
        if spec.kind == 'learner':
            spec = dataclasses.replace(spec, resume_iter=self.coordinator.saved_iter or 0)
        return spec

    def _on_lost(self, call: Any) -> None:
        self.coordinator.on_lost(call)

    # ---- the loop ----
    def going_on(self) -> bool:
        """Asked between two steps: whether there is another one."""
        if self.signals.stop_wanted:
            raise KeyboardInterrupt
        self.progress.update()
        self.commander_log.tick()
        return not (self.coordinator.finished or self.commander.out_of_budget())

    def final_evaluation(self) -> None:
        """Evaluate what the learner ended with, unless it was just evaluated."""
        self.coordinator.final_evaluation(_CLOSE_S)

    # ---- the end ----
    def finish(self) -> RunResult:
        """Last checkpoint; note how the run ended."""
        with self.signals.held():
            self.coordinator.drain(_CLOSE_S)
            self.coordinator.finish(False, _CLOSE_S)
            self.folder.finish('solved' if self.coordinator.solved else 'limit reached')
            self.commander_log.write()
            for line in self.verdict:
                self._log.info(line)
        return self.result()

    def interrupted(self) -> KeyboardInterrupt:
        """Save the run that is stopped; the exception carries the path of its checkpoint."""
        with self.signals.held():
            if not self.coordinator.finish(True, _INTERRUPT_S):
                self._log.warning('stopped before the learner could save: the newest earlier state is what remains')
        return KeyboardInterrupt(self.coordinator.last_checkpoint)

    @property
    def verdict(self) -> list[str]:
        """Whether it was worth while, in words."""
        return verdict(self)

    def result(self) -> RunResult:
        """Counters and paths, for the caller."""
        best = os.path.join(self._ckpt_path, 'ckpt_best.pth.tar')
        return RunResult(
            solved=self.coordinator.solved,
            final_return=self.evaluator.last_mean,
            best_return=max(self.evaluator.best, self.evaluator.last_mean),
            env_steps=self.tally.total_step,
            train_iters=self.tally.train_iter,
            episodes=self.tally.total_episode,
            seconds=self.seconds,
            seed=self.seed,
            exp_path=self.folder.path,
            ckpt_path=self._ckpt_path,
            checkpoint=self.coordinator.last_checkpoint,
            best_checkpoint=best if os.path.exists(best) else None,
            log_path=self.folder.log,
            curve_path=self.evaluator.curve_path,
            config=self.cfg,
            history=list(self.evaluator.history),
        )


def build_parallel(
    cfg: str | dict | None,
    seed: int | None,
    passed: Passed = Passed(),
    overrides: tuple[str, ...] = (),
    resume: str | None = None,
    carrier: Carrier | None = None,
    show_output: bool = False,
) -> ParallelRun:
    """
    Overview:
        Check and resolve the config, then build the run. A config error is raised before any file or process exists.
    Arguments:
        - carrier (:obj:`Carrier | None`): None makes the one that ``parallel.carrier`` names
    """
    started = time.perf_counter()
    saved = None if resume is None else saved_run(resume)
    if saved is not None and cfg is None:
        cfg = saved.config
    resolved = compile_config(
        cfg, policy=passed.policy, model=passed.model, env=passed.env_setting, overrides=list(overrides)
    )
    if saved is not None:
        check_same_run(resolved, saved)
        resolved.exp_name, seed = resume, saved.seed
        sizes = sizes_of_saved_logs(os.path.abspath(saved.ckpt_path), resolved.parallel.learner_num)
    if seed is None:
        seed = int.from_bytes(os.urandom(4), 'little') % 2**31
    _check_names(resolved.parallel)
    carrier = carrier or make_carrier(resolved.parallel, show_output)
    with contextlib.ExitStack() as stack:
        stack.callback(carrier.close)
        folder = RunFolder(resolved.exp_name or '.', resume=saved is not None)
        stack.callback(folder.close)
        if saved is None:
            ckpt_path = os.path.abspath(Checkpoints(folder.path, None, None).folder)
            os.makedirs(folder.log, exist_ok=True)
            save_config({**resolved, 'seed': seed}, os.path.join(folder.log, 'config.yaml'))
            folder.describe(seed, ckpt_path)
        else:
            ckpt_path = os.path.abspath(saved.ckpt_path)
            for left in (ckpt_path, folder.log):
                remove_unfinished(left)
            cut_logs(folder.log, sizes, KEPT_LOGS)
        run = ParallelRun(
            resolved, seed, folder, ckpt_path, passed, carrier, folder.count_resumes(saved is not None), started
        )
        stack.pop_all()
    return run


def _check_names(settings: Any) -> None:
    """A commander or role that nobody registered is an error before anything is started."""
    import_modules(settings.import_names or [])
    COMMANDER_REGISTRY.get(settings.commander_type)
    COMM_LEARNER_REGISTRY.get(settings.comm_learner_type)
    for name in (settings.comm_actor_type, settings.comm_evaluator_type):
        COMM_ACTOR_REGISTRY.get(name)


def make_carrier(settings: Any, show_output: bool = False) -> Carrier:
    """The carrier that the config names."""
    if settings.carrier == 'inline':
        from nervex.parallel.inline_carrier import InlineCarrier

        return InlineCarrier()
    from nervex.parallel.ray_carrier import RayCarrier

    return RayCarrier(settings.address, settings.object_store_mb, show_output)
