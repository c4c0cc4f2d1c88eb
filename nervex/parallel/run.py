"""One parallel run: what is built in the process that the user started, and its beginning and end."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from typing import Any

from nervex.parallel.carrier import Carrier, InlineCarrier
from nervex.parallel.coordinator import WAIT_S, Coordinator
from nervex.parallel.learner_role import sizes_of_saved_logs
from nervex.parallel.pace import Overlap, Rounds, given_up, make_plan, resources_of
from nervex.parallel.role import RoleSpec
from nervex.parallel.roster import Roster, Slot
from nervex.parallel.tally import CommanderLog, ParallelProgress, Tally, verdict
from nervex.run.build import EVALUATION_SEED_OFFSET, Launch, check_opponents, policy_class, refuse_beside
from nervex.run.life import RunLife
from nervex.run.result import RunResult
from nervex.run.state import ABOUT_THE_RUN, log_sizes
from nervex.utils import COMM_ACTOR_REGISTRY, COMM_LEARNER_REGISTRY, COMMANDER_REGISTRY
from nervex.utils.import_helper import import_modules
from nervex.utils.log_helper import TextLogger, build_logger
from nervex.worker.actor import BaseSerialEvaluator
from nervex.worker.actor.base_serial_evaluator import Evaluation
from nervex.worker.learner.checkpoints import Checkpoints

_CLOSE_S = 60.0  # for the last checkpoint
_INTERRUPT_S = 3.0  # and after Ctrl-C
_INCARNATIONS = 1000  # numbers of incarnations that one process may use
# what happened to the run is no result of it: it stays, whatever the newest saved state knows
KEPT_LOGS = (*ABOUT_THE_RUN, 'coordinator_logger.txt')


class ParallelRun(RunLife):
    """
    Overview:
        The coordinator with everything around it; a context manager that ends all roles.
    Arguments:
        - carrier (:obj:`Carrier | None`): where roles run; None: as ``parallel.carrier`` says
        - show_output (:obj:`bool`): what roles print appears here
        - shares (:obj:`bool`): the carrier has other runs, too, and goes on without this one
    """

    def __init__(
        self, launch: Launch, carrier: Carrier | None = None, show_output: bool = False, shares: bool = False
    ) -> None:
        refuse_beside(launch.cfg, 'in parallel mode actors collect beside the learner anyway')
        with contextlib.ExitStack() as stack:  # whatever fails below, what is there is closed
            super().__init__(launch, stack)  # its signals are given back last: a second Ctrl-C cuts the end short too
            self._passed, learners, sizes = launch.passed, self.cfg.parallel.learner_num, {}
            if launch.saved is not None:
                sizes = sizes_of_saved_logs(os.path.abspath(launch.saved.ckpt_path), learners)
            carrier = make_carrier(self.cfg.parallel, show_output, carrier)
            closing = contextlib.nullcontext if shares else carrier.close
            stack.callback(closing)  # it is there before the folder is, and ends before that
            self.folder = launch.open_folder(stack, sizes, KEPT_LOGS)
            stack.callback(closing)
            ckpt_path = launch.saved.ckpt_path if launch.saved else Checkpoints(self.folder.path, None, None).folder
            self._ckpt_path = os.path.abspath(ckpt_path)
            launch.describe(self.folder, self._ckpt_path, 'parallel')
            self._resumed = self.folder.count_resumes(launch.saved is not None)
            self._build(carrier, stack)
            self.folder.events.follow(self.tally, self.tally)
            self._build_selfplay(launch, stack)
            self.stack = stack.pop_all()
        self.show(False)

    def _build(self, carrier: Carrier, stack: contextlib.ExitStack) -> None:
        cfg, folder = self.cfg, self.folder
        self.plan = plan = make_plan(cfg, self._passed.env_setting)
        self.tally = self.actor = self.learner = Tally()
        self.log = TextLogger(folder.log, 'coordinator')
        self.evaluator = BaseSerialEvaluator(cfg.evaluator, folder.path, seed=self.seed + EVALUATION_SEED_OFFSET)
        command = policy_class(cfg, self._passed.policy)(cfg.policy, enable_field=('command',)).command_mode
        commander_class = COMMANDER_REGISTRY.get(cfg.parallel.commander_type)
        self.commander = commander_class(cfg.commander, self.tally, self.tally, self.evaluator, None, command)
        self.commander_log = CommanderLog(self, *build_logger(os.path.join(folder.log, 'commander'), 'commander'))
        for part in (self.log, self.evaluator, self.commander_log):
            stack.callback(part.close)
        self.pace = (Rounds if plan.rounds else Overlap)(plan, cfg.parallel, carrier.measures)
        self.roster = Roster(carrier, cfg.parallel, self.log, self._renewed)
        self.roster.on_told = folder.events.told
        self.coordinator = Coordinator(self)

    def _build_selfplay(self, launch: Launch, stack: contextlib.ExitStack) -> None:
        kind = launch.cfg.commander.selfplay
        if kind is None or launch.passed.rivals is not None:
            return
        from nervex.parallel.rivalry import ParallelSelfPlay
        from nervex.run.opponents import SelfPlay, SentOpponents

        game = check_opponents(launch, 'commander.selfplay', kind)
        self._passed = dataclasses.replace(self._passed, rivals=SentOpponents(launch, game))
        book = SelfPlay(launch, self.folder.path, game, log='selfplay')
        stack.callback(book.close)
        ParallelSelfPlay(self, book)

    def __exit__(self, kind: Any = None, error: Any = None, trace: Any = None) -> None:
        if error is not None and not isinstance(error, KeyboardInterrupt):
            self.log.info(f'the run ended with {kind.__name__}: {str(error).strip()}')
        super().__exit__(kind, error, trace)

    def show(self, progress: bool, total_log: bool = False) -> None:
        """Whether a person watches."""
        self.progress = ParallelProgress(self, progress, total_log)
        self.stack.callback(self.progress.close)

    # ---- what the coordinator tells, and asks for ----
    def evaluated(self, result: Evaluation) -> None:
        """There is an evaluation."""
        self.commander_log.evaluated(*self.evaluator.history[-1][:2], result)
        self.progress.evaluated()

    def notes(self) -> dict[str, Any]:
        """What a later process must know, beside what the learner does."""
        parts = {'evaluator': self.evaluator.state_dict(), 'commander': self.commander.state_dict()}
        return {**self.tally.state_dict(), **parts, 'seconds': self.seconds, 'log_sizes': log_sizes(self.folder.log)}

    def resumed_from(self, notes: dict[str, Any]) -> None:
        """Go on from the notes of an earlier process."""
        self.tally.load_state_dict(notes)
        self.evaluator.load_state_dict(notes['evaluator'])
        self.commander.load_state_dict(notes.get('commander', {}))
        self.seconds_before = notes['seconds']

    # ---- roles ----
    def begin(self) -> None:
        """Start all roles at once."""
        parallel, plan = self.cfg.parallel, self.plan
        costly = given_up(self.cfg, plan)
        if costly is not None:
            self.log.warning(costly)
            self.progress.say(costly)
        for kind, count, registry, name in (
            ('learner', plan.learners, COMM_LEARNER_REGISTRY, parallel.comm_learner_type),
            ('actor', plan.actors, COMM_ACTOR_REGISTRY, parallel.comm_actor_type),
            ('evaluator', plan.evaluators, COMM_ACTOR_REGISTRY, parallel.comm_evaluator_type),
        ):
            for index in range(count):
                spec = RoleSpec(
                    kind=kind,
                    index=index,
                    incarnation=self._resumed * _INCARNATIONS,
                    count=count,
                    cfg=self.cfg,
                    seed=self.seed,
                    exp_path=os.path.abspath(self.folder.path),
                    envs=plan.envs_per_actor,
                    passed=self._passed,
                    ckpt_path=self._ckpt_path,
                    resume_iter=0 if self._resumed and kind == 'learner' else None,
                )
                resources = resources_of(self.cfg, kind, here=parallel.address is None)
                self.roster.add(spec, registry.get(name), resources)

    def _renewed(self, slot: Slot) -> RoleSpec:
        resume_iter = self.coordinator.saved_iter or 0 if slot.spec.kind == 'learner' else None
        return dataclasses.replace(slot.spec, incarnation=slot.spec.incarnation + 1, resume_iter=resume_iter)

    # ---- the loop, and its end ----
    def going_on(self) -> bool:
        """Asked between two steps: whether there is another one."""
        if self.signals.stop_wanted:
            raise KeyboardInterrupt
        self.progress.update()
        self.commander_log.write(now=False)
        return not (self.coordinator.solved or self.commander.out_of_budget())

    def step(self, timeout_s: float = WAIT_S) -> None:
        """A step of the coordinator, and of who chooses opponents."""
        self.coordinator.step(timeout_s)
        self.folder.events.round()
        if self.commander.selfplay is not None:
            self.commander.selfplay.step()

    def final_evaluation(self) -> None:
        """Evaluate what the learner ended with, unless it was just evaluated."""
        if not self.coordinator.solved:
            self.coordinator.final_evaluation(_CLOSE_S)

    def finish(self) -> RunResult:
        """Last checkpoint, and the complete state in case that its limits are raised; note how the run ended."""
        with self.signals.held():
            self.coordinator.drain(_CLOSE_S)
            self.coordinator.finish(_CLOSE_S)
            result = RunResult.of(self, self.coordinator.solved, self._ckpt_path, self.coordinator.last_checkpoint)
            self.folder.ended(result)
            self.commander_log.write()
            result.notes = verdict(self)
            for line in result.notes:
                self.log.info(line)
        return result

    def interrupted(self) -> KeyboardInterrupt:
        """Save the run that is stopped; the exception carries the path of its checkpoint."""
        with self.signals.held():
            if not self.coordinator.finish(_INTERRUPT_S):
                self.log.warning('stopped before the learner could save: the newest earlier state is what remains')
        return KeyboardInterrupt(self.coordinator.last_checkpoint)


def make_carrier(settings: Any, show_output: bool, given: Carrier | None = None) -> Carrier:
    """The carrier that was given or that the section ``parallel`` names, whose other names are checked before."""
    import_modules(settings.import_names or [])
    COMMANDER_REGISTRY.get(settings.commander_type)  # a name that nobody registered is told now
    COMM_LEARNER_REGISTRY.get(settings.comm_learner_type)
    for name in (settings.comm_actor_type, settings.comm_evaluator_type):
        COMM_ACTOR_REGISTRY.get(name)
    if given is not None or settings.carrier == 'inline':
        return given or InlineCarrier()
    from nervex.parallel.ray_carrier import RayCarrier

    return RayCarrier(settings.address, settings.object_store_mb, show_output)
