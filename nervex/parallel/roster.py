"""Who is there: the roles of a run, their deaths and their successors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from nervex.interaction import Master, Task, TaskFail
from nervex.interaction.exception import DataLost, SlaveDied, SlaveNotBuilt, SlaveUnreachable
from nervex.interaction.master import Hold
from nervex.parallel.carrier import Carrier
from nervex.parallel.role import RoleSpec
from nervex.utils import NervexError, TrainingError
from nervex.utils.log_helper import TextLogger

_FORMAL = ('begin', 'ping')  # tasks that are no work
_TRIES = 3  # restarts of a role that answers nothing between them
_AWAY_S = 10.0  # between two looks at the answers, there is otherwise a second at most
_SAID = 0.25  # of the time in which a role must get on, after which a line says that it does not


class Slot(Hold):
    """The place of a role; who fills it may change."""

    master: Roster

    def __init__(self, roster: Roster, spec: RoleSpec, role: Any, resources: dict[str, Any]) -> None:
        super().__init__(spec.name, roster, None)
        self.spec, self.role, self.resources = spec, role, resources
        self.ready = self.was_ready = False  # in this incarnation, in any
        self.start_at: float | None = None  # when its successor is to be started
        self.gone = False  # not started again
        self.pid: int | None = None
        self.served = 0  # number of the last work that it was given
        self.task: Any = None  # what the commander wants it to do
        self.version = -1  # of the weights that it has or is sent
        self.died_at: float | None = None  # since when it is missing
        self.starts: deque[float] = deque()  # times of its restarts
        self.fruitless = 0  # deaths over its work, or before it was ready, since its last answer
        self.progress = -1.0  # what it said of itself last
        self.moved_at = 0.0  # when that changed, or it had nothing to do
        self.stuck = False  # a line said that it does not get on
        self._ping_at = 0.0

    def work(self) -> list[Task]:
        """Tasks of the coordinator's business that it has."""
        return [task for task in self.tasks() if task.method not in _FORMAL]

    def look_after(self, now: float) -> None:
        """Whether it lives, answers in time, and gets on with its work."""
        limits = self.master.settings
        if not self.ready:
            for task in self.tasks():
                if now - task.since > limits.start_timeout_s:
                    self.master.never_came(self, task, limits.start_timeout_s)
        elif limits.stall_s is not None:
            still_s, said_before = now - self.moved_at, self.stuck
            self.stuck = still_s > _SAID * limits.stall_s
            doing = ', '.join(sorted({task.method for task in self.work()})) or 'its life'
            said = f'no progress for {still_s:.0f} s in {doing}'
            if still_s > limits.stall_s:
                self.master.end(self, said)
            elif self.stuck and not said_before:
                after = f'it is started anew after {limits.stall_s:g} s (parallel.stall_s)'
                self.master.log.warning(f'{self.name}: {said}; {after}')
        if self.ready and now >= self._ping_at and not any(task.method == 'ping' for task in self.tasks()):
            self._ping_at = now + self.greets_s
            self.new('ping').start()


class Roster(Master):
    """
    Overview:
        The master of a run: starts roles, and starts those that died anew, beside the others.
    Arguments:
        - log (:obj:`TextLogger`): told what happens
        - renew (:obj:`Callable`): gives the spec of the successor
    """

    def __init__(self, carrier: Carrier, settings: Any, log: TextLogger, renew: Callable[[Slot], RoleSpec]) -> None:
        super().__init__('coordinator', carrier)
        self.carrier, self.settings, self.log, self._renew = carrier, settings, log, renew
        self.slots: list[Slot] = []
        self.restarts = 0
        self._here_at = carrier.now()
        self.on_begun: Callable[[Task], Any] = lambda task: None  # told when a role is there
        self.on_lost: Callable[[Task], Any] = lambda task: None  # told of every task that will not be done
        self.on_told: Callable[[list], Any] = lambda events: None  # told what roles have logged

    # ---- roles ----
    def add(self, spec: RoleSpec, role: Any, resources: dict[str, Any]) -> Slot:
        """Start a role."""
        slot = Slot(self, spec, role, resources)
        self.slots.append(slot)
        self._start(slot)
        return slot

    def holds(self) -> list[Slot]:
        """All roles."""
        return self.slots

    def of(self, kind: str, ready: bool = True) -> list[Slot]:
        """The roles of a kind: those that are ready, or all that are not gone for good."""
        return [s for s in self.slots if s.spec.kind == kind and not s.gone and (s.ready or not ready)]

    def _start(self, slot: Slot) -> None:
        slot.handle = self.carrier.spawn(slot.name, slot.role, {'spec': slot.spec}, slot.resources)
        slot.ready, slot.version, slot.task, slot.start_at = False, -1, None, None
        self.ask(slot, 'begin', done=self.on_begun)

    def ask(
        self, slot: Slot, method: str, *args: Any, done: Callable[[Task], Any], returns: int = 1, **context: Any
    ) -> Task:
        """Give a role a task; ``done`` is told of its answer, ``on_lost`` if there will be none."""
        return slot.new(method, *args, returns=returns, **context).on_complete(done).on_fail(self.on_lost).start()

    # ---- answers ----
    def answers(self, timeout_s: float) -> None:
        """Wait for answers; start those whose time has come."""
        self.carrier.check()
        now = self.carrier.now()
        away_s = now - self._here_at
        if away_s > _AWAY_S:  # this process was stopped for a while: nobody hangs because of that
            for slot in self.slots:
                slot.moved_at += away_s
            for task in self.calls.values():
                task.since += away_s
        for slot in self.slots:
            if slot.start_at is not None and slot.start_at <= now:
                slot.spec = self._renew(slot)
                self.restarts += 1
                self._start(slot)
        super().answers(timeout_s)
        self._here_at = self.carrier.now()

    def completed(self, task: Task, answer: Any) -> None:
        """An answer came, with what the role has to tell."""
        slot, formal = task.hold, task.method in _FORMAL
        if task.method == 'begin':
            since, slot.died_at = slot.died_at, None
            slot.ready, slot.was_ready, slot.pid = True, True, answer['pid']
            missing = '' if since is None else f', {self.carrier.now() - since:.1f} s after the death of the last'
            self.log.info(f'{slot.name} is there: process {slot.pid}, incarnation {slot.spec.incarnation}{missing}')
        if not formal:
            slot.fruitless = 0
        if not formal or answer['progress'] != slot.progress or not slot.work():
            slot.moved_at = self.carrier.now()
        super().completed(task, answer)
        if formal:
            slot.progress = answer['progress']
            for event in answer['events']:
                self.log.warning(f'{slot.name}: {event}')
            self.on_told(answer['told'])

    def failed(self, task: Task, error: NervexError) -> None:
        """A death is survived, and so is the loss of data; what the code of a role raises ends the run."""
        slot = task.hold
        if isinstance(error, SlaveDied):
            said = str(error).strip()
            if isinstance(error, SlaveNotBuilt) and not slot.was_ready:  # it never worked: no accident
                raise TaskFail(None, f'{slot.name} cannot be built: {said}') from error
            if isinstance(error, SlaveUnreachable):
                self.carrier.avoid(slot.handle)
            self.end(slot, said.splitlines()[-1])  # it must not come back beside another
        elif isinstance(error, DataLost):
            slot.fruitless = 0
            super().failed(task, error)
        elif isinstance(error, TaskFail):
            raise TaskFail(None, f'{slot.name} failed in {task.method}:\n{error}') from error
        else:
            self.log.warning(f'{slot.name} failed in {task.method}: {error}')
            raise error

    def never_came(self, slot: Slot, task: Task, limit: float) -> None:
        """A role was not built in time. One that has worked hangs; where there never was one, there may be no room."""
        if slot.was_ready:
            self.end(slot, f'it was not built within {limit:g} s')
            return
        said = (
            f'{slot.name} was not there within {limit:g} s (parallel.start_timeout_s): the machines are too busy, or '
            f'none has room for parallel.resources.{slot.spec.kind}, which is {dict(slot.resources)}'
        )
        if slot.spec.kind == 'learner' or not self.of(slot.spec.kind):
            raise TrainingError(said)
        self.log.warning(f'{said}; the run goes on without it until there is')
        task.since = self.carrier.now()

    # ---- deaths ----
    def end(self, slot: Slot, reason: str) -> None:
        """
        Overview:
            End a role that is dead or as good as dead, and give up its tasks; its successor is started, now or a little
            later if it keeps dying. Several learners fall and rise together.
        """
        if slot.start_at is not None:
            return  # it is being replaced already
        self.carrier.check()  # or all of them are gone
        slot.fruitless += bool(slot.work()) or not slot.ready  # who waits for work is not to blame
        others = self.of('learner', ready=False) if slot.spec.kind == 'learner' else []
        group = [slot, *(other for other in others if other is not slot and other.start_at is None)]
        for member in group:
            self.carrier.kill(member.handle)
            said = reason if member is slot else f'ended together with {slot.name}'
            member.ready, member.died_at = False, member.died_at or self.carrier.now()
            collects = sum(task.method == 'collect' for task in member.tasks())
            self.log.warning(f'{member.name} died ({said}); {collects} collect calls lost')
            self.give_up(member, SlaveDied(said))
        start_at = self.carrier.now() + max(self._delay(member, reason) for member in group)
        for member in group:
            member.start_at = None if member.gone else start_at

    def _delay(self, slot: Slot, reason: str) -> float:
        """Seconds until the successor is started: more, if the last did nothing; who dies too often is given up."""
        limits, now = self.settings, self.carrier.now()
        while slot.starts and now - slot.starts[0] > limits.restart_window_s:
            slot.starts.popleft()
        if len(slot.starts) >= limits.restarts or slot.fruitless > _TRIES:
            slot.gone = True
            often = f'{len(slot.starts) + 1} times within {limits.restart_window_s:g} s'
            if slot.fruitless > _TRIES:
                often = f'{slot.fruitless} times, and did nothing in between'
            said = f'{slot.name} died {often}'
            if not self.of(slot.spec.kind, ready=False) or slot.spec.kind == 'learner':
                raise TrainingError(f'{said}, the last time so: {reason}')
            self.log.warning(f'{said}: the run goes on without it')
            return 0.0
        slot.starts.append(now)
        return 0.0 if slot.fruitless < 2 else 0.25 * 2.0**slot.fruitless
