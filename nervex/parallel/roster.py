"""Who is there: the roles of a run, their outstanding calls, their deaths and their successors."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nervex.parallel.carrier import (
    Carrier,
    Handle,
    LostDataError,
    Ref,
    RoleDiedError,
    RoleError,
    RoleNotBuiltError,
    RoleUnreachableError,
)
from nervex.parallel.role import RoleSpec
from nervex.utils import NervexError, TrainingError

_FORMAL = ('ready', 'begin', 'ping')  # calls that are no work
_TRIES = 3  # restarts of a role that answers nothing between them
_PING_S = 1.0  # between two questions to those who have nothing to do


@dataclass
class Slot:
    """The place of a role; who fills it may change."""

    spec: RoleSpec
    role: Any
    resources: dict[str, Any]
    handle: Handle | None = None
    ready: bool = False
    was_ready: bool = False  # in any incarnation
    pid: int | None = None
    outstanding: int = 0  # calls of the coordinator's business
    served: int = 0  # number of the last of them
    task: dict[str, Any] | None = None
    version: int = -1  # of the weights that it has or is sent
    started_at: float = 0.0
    died_at: float | None = None  # since when it is missing
    starts: deque[float] = field(default_factory=deque)  # times of its restarts
    fruitless: int = 0  # deaths over its work, or before it was ready, since its last answer
    starting: bool = False  # its successor is about to be started
    gone: bool = False  # not started again

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass
class Call:
    """A question that has not been answered."""

    slot: Slot
    method: str
    since: float
    context: dict[str, Any]


class Roster:
    """
    Overview:
        Starts roles, keeps their outstanding calls, and starts those that died anew, beside the others.
    Arguments:
        - log (:obj:`Callable`): takes a line about something that happened
        - on_lost (:obj:`Callable`): told every call whose role died before it answered
        - renew (:obj:`Callable`): gives the spec of the successor
    """

    def __init__(
        self,
        carrier: Carrier,
        settings: Any,
        log: Callable[[str], None],
        on_lost: Callable[[Call], None],
        renew: Callable[[Slot], RoleSpec] | None = None,
    ) -> None:
        self.carrier, self._settings, self._log, self._on_lost = carrier, settings, log, on_lost
        self._renew = renew or (lambda slot: dataclasses.replace(slot.spec, incarnation=slot.spec.incarnation + 1))
        self.slots: list[Slot] = []
        self.calls: dict[Ref, Call] = {}
        self._to_start: list[tuple[float, Slot]] = []
        self.restarts = 0
        self._next_ping = 0.0

    # ---- roles ----
    def add(self, spec: RoleSpec, role: Any, resources: dict[str, Any]) -> Slot:
        """Start a role."""
        slot = Slot(spec, role, resources)
        self.slots.append(slot)
        self._start(slot)
        return slot

    def of(self, kind: str, ready: bool = True) -> list[Slot]:
        """The roles of a kind: those that are ready, or all that are not gone for good."""
        return [s for s in self.slots if s.spec.kind == kind and not s.gone and (s.ready or not ready)]

    def _start(self, slot: Slot) -> None:
        slot.handle = self.carrier.spawn(slot.name, slot.role, {'spec': slot.spec}, slot.resources)
        slot.ready, slot.outstanding, slot.version, slot.task = False, 0, -1, None
        slot.started_at = self.carrier.now()
        self.call(slot, 'begin' if slot.spec.kind == 'learner' else 'ready')

    def call(self, slot: Slot, method: str, *args: Any, returns: int = 1, **context: Any) -> Call:
        """Ask a role; a second answer comes as reference, in the context's ``data``."""
        refs = slot.handle.call(method, *args, returns=returns)
        if returns > 1:
            refs, context['data'] = refs
        call = self.calls[refs] = Call(slot, method, self.carrier.now(), context)
        if method not in _FORMAL:
            slot.outstanding += 1
        return call

    # ---- answers ----
    def answers(self, timeout_s: float) -> list[tuple[Call, Any]]:
        """
        Overview:
            Wait for answers; those that will never come are told to ``on_lost``.
        """
        self._start_successors()
        timeout_s = min([timeout_s, *(max(at - self.carrier.now(), 0.001) for at, _ in self._to_start)])
        found = []
        for ref in self.carrier.wait(list(self.calls), timeout_s):
            call = self.calls.pop(ref, None)
            if call is None:  # of a role that died meanwhile
                continue
            try:
                answer = self.carrier.get(ref)
            except RoleDiedError as e:
                self.calls[ref] = call
                said = str(e).strip()
                if isinstance(e, RoleNotBuiltError) and not call.slot.was_ready:  # it never worked: no accident
                    raise RoleError(f'{call.slot.name} cannot be built: {said}') from e
                if isinstance(e, RoleUnreachableError):
                    self.carrier.avoid(call.slot.handle)
                self.carrier.kill(call.slot.handle)  # it must not come back beside another
                self.died(call.slot, said.splitlines()[-1])
                continue
            except LostDataError as e:
                answer = e
            except RoleError as e:
                raise RoleError(f'{call.slot.name} failed in {call.method}:\n{e}') from e
            except NervexError as e:
                self._log(f'{call.slot.name} failed in {call.method}: {e}')
                raise
            if call.method in ('ready', 'begin'):
                self._is_ready(call.slot, answer)
            elif call.method not in _FORMAL:
                call.slot.outstanding -= 1
                call.slot.fruitless = 0
            found.append((call, answer))
        self._look_for_silence()
        self._ask_the_idle()
        return found

    def _is_ready(self, slot: Slot, answer: dict[str, Any]) -> None:
        slot.ready, slot.was_ready, slot.pid = True, True, answer['pid']
        missing = (
            '' if slot.died_at is None else f', {self.carrier.now() - slot.died_at:.1f} s after the death of the last'
        )
        slot.died_at = None
        self._log(f'{slot.name} is there: process {answer["pid"]}, incarnation {slot.spec.incarnation}{missing}')

    def _look_for_silence(self) -> None:
        now, limits = self.carrier.now(), self._settings
        for call in list(self.calls.values()):
            limit = limits.start_timeout_s if call.method in ('ready', 'begin') else limits.task_timeout_s
            if limit is not None and now - call.since > limit and not call.slot.gone:
                if not call.slot.was_ready:
                    self._never_came(call, limit)
                    return
                self.carrier.kill(call.slot.handle)
                self.died(call.slot, f'no answer to {call.method} within {limit:g} s')
                return

    def _never_came(self, call: Call, limit: float) -> None:
        """A role was not built in time, nor was it ever: there may be no room for it."""
        slot = call.slot
        said = (
            f'{slot.name} was not there within {limit:g} s (parallel.start_timeout_s): the machines are too busy, or '
            f'none has room for parallel.resources.{slot.spec.kind}, which is {dict(slot.resources)}'
        )
        if slot.spec.kind == 'learner' or not self.of(slot.spec.kind):
            raise TrainingError(said)
        self._log(f'{said}; the run goes on without it until there is')
        call.since = self.carrier.now()

    def _ask_the_idle(self) -> None:
        """Who has nothing to do would not be missed: now and then it is asked whether it lives."""
        now = self.carrier.now()
        if now < self._next_ping:
            return
        self._next_ping = now + _PING_S
        busy = {call.slot.name for call in self.calls.values()}
        for slot in self.slots:
            if slot.ready and slot.name not in busy:
                self.call(slot, 'ping')

    # ---- deaths ----
    def died(self, slot: Slot, reason: str) -> None:
        """
        Overview:
            Forget the calls of a role that died; its successor is started, now or a little later if it keeps dying.
            Several learners fall and rise together.
        """
        if slot.starting:
            return  # it is being replaced already
        work = any(call.slot is slot and call.method not in _FORMAL for call in self.calls.values())
        slot.fruitless += work or not slot.ready  # who waits for work is not to blame
        group = [slot]
        if slot.spec.kind == 'learner':
            group += [s for s in self.slots if s.spec.kind == 'learner' and s is not slot and not s.starting]
        for member in group:
            if member is not slot:
                self.carrier.kill(member.handle)
            self._forget(member, reason if member is slot else f'ended together with {slot.name}')
        delay = max(self._delay(member, reason) for member in group)
        for member in group:
            if not member.gone:
                member.starting = True
                self._to_start.append((self.carrier.now() + delay, member))
        if not delay:
            self._start_successors()

    def _forget(self, slot: Slot, reason: str) -> None:
        lost = [(ref, call) for ref, call in self.calls.items() if call.slot is slot]
        for ref, _ in lost:
            del self.calls[ref]
        now = self.carrier.now()
        slot.ready, slot.died_at, slot.outstanding = False, slot.died_at or now, 0
        self._log(f'{slot.name} died ({reason}); {sum(c.method == "collect" for _, c in lost)} collect calls lost')
        for _, call in lost:
            self._on_lost(call)

    def _delay(self, slot: Slot, reason: str) -> float:
        """Seconds until the successor is started: more, if the last did nothing; who dies too often is given up."""
        limits, now = self._settings, self.carrier.now()
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
