"""Who is there: the roles of a run, their deaths and their successors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from nervex.interaction import Master, Task, TaskFail
from nervex.interaction.base import Carrier
from nervex.interaction.exception import DataLost, SlaveDied, SlaveNotBuilt, SlaveUnreachable
from nervex.interaction.master import Hold
from nervex.parallel.role import RoleSpec
from nervex.utils import NervexError, TrainingError

_FORMAL = ('ready', 'begin', 'ping')  # tasks that are no work
_STARTS = ('ready', 'begin')  # the first of a role: it answers when it has been built
_TRIES = 3  # restarts of a role that answers nothing between them
_PING_S = 1.0  # between two questions to those who have nothing to do


class Slot(Hold):
    """The place of a role; who fills it may change."""

    greets_s = _PING_S
    master: Roster

    def __init__(self, roster: Roster, spec: RoleSpec, role: Any, resources: dict[str, Any]) -> None:
        super().__init__(spec.name, roster, None)
        self.spec, self.role, self.resources = spec, role, resources
        self.ready = self.was_ready = False  # in this incarnation, in any
        self.starting = False  # its successor is about to be started
        self.gone = False  # not started again
        self.pid: int | None = None
        self.served = 0  # number of the last work that it was given
        self.task: Any = None  # what the commander wants it to do
        self.version = -1  # of the weights that it has or is sent
        self.died_at: float | None = None  # since when it is missing
        self.starts: deque[float] = deque()  # times of its restarts
        self.fruitless = 0  # deaths over its work, or before it was ready, since its last answer

    @property
    def outstanding(self) -> int:
        """Tasks of the coordinator's business that it has."""
        return sum(task.hold is self and task.method not in _FORMAL for task in self.master.calls.values())

    def greeting(self) -> Task | None:
        """Who has nothing to do would not be missed: now and then it is asked whether it lives."""
        busy = any(task.hold is self for task in self.master.calls.values())
        return self.new('ping') if self.ready and not busy else None

    def patience_s(self, task: Task) -> float | None:
        """As the settings say."""
        limits = self.master.settings
        return limits.start_timeout_s if task.method in _STARTS else limits.task_timeout_s

    def silent(self, task: Task, limit: float) -> None:
        """End who hangs; who was never there may have no room."""
        if self.gone:
            return
        if not self.was_ready:
            self.master.never_came(self, task, limit)
        else:
            self.master.carrier.kill(self.handle)
            self.master.died(self, f'no answer to {task.method} within {limit:g} s')


class Roster(Master):
    """
    Overview:
        The master of a run: starts roles, and starts those that died anew, beside the others.
    Arguments:
        - log (:obj:`Callable`): takes a line about something that happened
        - renew (:obj:`Callable`): gives the spec of the successor
    """

    def __init__(
        self, carrier: Carrier, settings: Any, log: Callable[[str], None], renew: Callable[[Slot], RoleSpec]
    ) -> None:
        super().__init__('coordinator', carrier)
        self.carrier, self.settings, self._log, self._renew = carrier, settings, log, renew
        self.slots: list[Slot] = []
        self._to_start: list[tuple[float, Slot]] = []
        self.restarts = 0
        self.on_begun: Callable[[Task], Any] = lambda task: None  # told when a role is there
        self.on_lost: Callable[[Task], Any] = lambda task: None  # told of every task that will not be done

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
        slot.ready, slot.version, slot.task = False, -1, None
        self.ask(slot, 'begin' if slot.spec.kind == 'learner' else 'ready', done=self.on_begun)

    def ask(
        self, slot: Slot, method: str, *args: Any, done: Callable[[Task], Any], returns: int = 1, **context: Any
    ) -> Task:
        """Give a role a task; ``done`` is told of its answer, ``on_lost`` if there will be none."""
        return slot.new(method, *args, returns=returns, **context).on_complete(done).on_fail(self.on_lost).start()

    # ---- answers ----
    def answers(self, timeout_s: float) -> None:
        """Wait for answers; start those whose time has come."""
        self._start_successors()
        super().answers(timeout_s)

    def _spans(self) -> Iterable[float]:
        return [_PING_S, *(max(at - self.carrier.now(), 0.001) for at, _ in self._to_start)]

    def completed(self, task: Task, answer: Any) -> None:
        """An answer came, with what the role has to tell."""
        slot = task.hold
        if task.method in _STARTS:
            self._is_ready(slot, answer)
        elif task.method not in _FORMAL:
            slot.fruitless = 0
        super().completed(task, answer)
        for event in answer.get('events', ()) if isinstance(answer, dict) else answer.events:
            self._log(f'{slot.name}: {event}')

    def failed(self, task: Task, error: NervexError) -> None:
        """A death is survived, and so is the loss of data; what the code of a role raises ends the run."""
        slot = task.hold
        if isinstance(error, SlaveDied):
            said = str(error).strip()
            if isinstance(error, SlaveNotBuilt) and not slot.was_ready:  # it never worked: no accident
                raise TaskFail(None, f'{slot.name} cannot be built: {said}') from error
            if isinstance(error, SlaveUnreachable):
                self.carrier.avoid(slot.handle)
            self.carrier.kill(slot.handle)  # it must not come back beside another
            self.died(slot, said.splitlines()[-1])
        elif isinstance(error, DataLost):
            slot.fruitless = 0
            super().failed(task, error)
        elif isinstance(error, TaskFail):
            raise TaskFail(None, f'{slot.name} failed in {task.method}:\n{error}') from error
        else:
            self._log(f'{slot.name} failed in {task.method}: {error}')
            raise error

    def _is_ready(self, slot: Slot, answer: dict[str, Any]) -> None:
        slot.ready, slot.was_ready, slot.pid = True, True, answer['pid']
        since = slot.died_at
        missing = '' if since is None else f', {self.carrier.now() - since:.1f} s after the death of the last'
        slot.died_at = None
        self._log(f'{slot.name} is there: process {answer["pid"]}, incarnation {slot.spec.incarnation}{missing}')

    def never_came(self, slot: Slot, task: Task, limit: float) -> None:
        """A role was not built in time, nor was it ever: there may be no room for it."""
        said = (
            f'{slot.name} was not there within {limit:g} s (parallel.start_timeout_s): the machines are too busy, or '
            f'none has room for parallel.resources.{slot.spec.kind}, which is {dict(slot.resources)}'
        )
        if slot.spec.kind == 'learner' or not self.of(slot.spec.kind):
            raise TrainingError(said)
        self._log(f'{said}; the run goes on without it until there is')
        task.since = self.carrier.now()

    # ---- deaths ----
    def died(self, slot: Slot, reason: str) -> None:
        """
        Overview:
            Give up the tasks of a role that died; its successor is started, now or a little later if it keeps dying.
            Several learners fall and rise together.
        """
        if slot.starting:
            return  # it is being replaced already
        slot.fruitless += bool(slot.outstanding) or not slot.ready  # who waits for work is not to blame
        group = [slot]
        if slot.spec.kind == 'learner':
            group += [s for s in self.slots if s.spec.kind == 'learner' and s is not slot and not s.starting]
        for member in group:
            if member is not slot:
                self.carrier.kill(member.handle)
            said = reason if member is slot else f'ended together with {slot.name}'
            member.ready, member.died_at = False, member.died_at or self.carrier.now()
            collects = sum(task.hold is member and task.method == 'collect' for task in self.calls.values())
            self._log(f'{member.name} died ({said}); {collects} collect calls lost')
            self.give_up(member, SlaveDied(said))
        delay = max(self._delay(member, reason) for member in group)
        for member in group:
            if not member.gone:
                member.starting = True
                self._to_start.append((self.carrier.now() + delay, member))
        if not delay:
            self._start_successors()

    def _delay(self, slot: Slot, reason: str) -> float:
        """Seconds until the successor is started: more, if the last did nothing; who dies too often is given up."""
        limits, now = self.settings, self.carrier.now()
        while slot.starts and now - slot.starts[0] > limits.restart_window_s:
            slot.starts.popleft()
        if len(slot.starts) >= limits.restarts or slot.fruitless > _TRIES:
            slot.gone = True
            said = f'{slot.name} died {len(slot.starts) + 1} times within {limits.restart_window_s:g} s'
            if slot.fruitless > _TRIES:
                said = f'{slot.name} died {slot.fruitless} times, and did nothing in between'
            if not self.of(slot.spec.kind, ready=False) or slot.spec.kind == 'learner':
                raise TrainingError(f'{said}, the last time so: {reason}')
            self._log(f'{said}: the run goes on without it')
            return 0.0
        slot.starts.append(now)
        return 0.0 if slot.fruitless < 2 else 0.25 * 2.0**slot.fruitless

    def _start_successors(self) -> None:
        now = self.carrier.now()
        for entry in [e for e in self._to_start if e[0] <= now]:
            self._to_start.remove(entry)
            slot = entry[1]
            slot.spec, slot.starting = self._renew(slot), False
            self.restarts += 1
            self._start(slot)
