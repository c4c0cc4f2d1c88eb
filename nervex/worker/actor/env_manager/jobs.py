"""The jobs of a manager's groups of envs: giving them, seeing them end, noticing those that take too long."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from nervex.envs.hosting.host import EnvFault, HostSetup
from nervex.worker.actor.env_manager.backend import Backend, WorkerLost

LONGEST_SLEEP_S = 1.0  # so that not more than this counts of the time for which the process was stopped
SUSPENDED_S = 0.5  # a sleep that takes so much longer than asked for was no sleep


class Job:
    """What a group is to do: 'start' (make its envs), 'step' some envs, or one of ``EnvHost.obey``'s ('begin', ...)."""

    __slots__ = ('args', 'begun', 'ids', 'kind', 'slot')

    def __init__(self, kind: str, ids: list[int], slot: int = 0, args: Any = ()) -> None:
        self.kind, self.ids, self.slot, self.args, self.begun = kind, ids, slot, args, 0.0

    def __repr__(self) -> str:
        return f'Job({self.kind} {self.ids})'


class Jobs:
    """
    Overview:
        A group has at most one job; what comes meanwhile waits in its queue. A group that was lost is started again
        when it has something to do.
    Arguments:
        - timeouts (:obj:`dict`): seconds for the jobs by kind: start, step, begin; others have those of a step
        - setup (:obj:`Callable`): group -> HostSetup
        - ended (:obj:`Callable`): called with (group, job, answer) when a job has ended well
        - lost (:obj:`Callable`): called with (group, job, WorkerLost) when a group was lost; it gets no 'start'
        - not_made (:obj:`Callable`): called with (group, EnvFault) when a group could not be started; tells when to try
          again, by the clock of ``time.monotonic``
    Interfaces:
        start, give, give_later, resume, progress, settle
    """

    def __init__(
        self,
        backend: Backend,
        timeouts: dict[str, float],
        setup: Callable[[int], HostSetup],
        ended: Callable[[int, Job, Any], None],
        lost: Callable[[int, Job, WorkerLost], None],
        not_made: Callable[[int, EnvFault], float],
    ) -> None:
        self.running: dict[int, Job] = {}
        self.queues: list[deque[Job]] = [deque() for _ in backend.groups]
        self.later: list[tuple[float, int, Job]] = []  # (when, group, job)
        self._alive: set[int] = set()
        self._backend, self._timeouts, self._setup = backend, timeouts, setup
        self._ended, self._lost, self._not_made = ended, lost, not_made

    # ------------------------------------------------------------------ giving
    def start(self, g: int) -> None:
        """Have a group make its envs."""
        self._backend.launch(g, self._setup(g))
        self._note(g, Job('start', list(self._backend.groups[g])))

    def give(self, g: int, job: Job) -> None:
        """Give a job, or queue it."""
        if g in self.running:
            self.queues[g].append(job)
        elif g in self._alive:
            self._dispatch(g, job)
        else:
            self.queues[g].append(job)
            if not any(h == g and later.kind == 'start' for _, h, later in self.later):
                self.start(g)

    def give_later(self, when: float, g: int, job: Job) -> None:
        """The same, at that time."""
        self.later.append((when, g, job))

    def forget_steps(self, g: int) -> None:
        """Take the steps out of a group's queue: it was lost, and their actions were for lost episodes."""
        self.queues[g] = deque(job for job in self.queues[g] if job.kind != 'step')

    def resume(self, slot: int) -> None:
        """After Ctrl-C in a step: wait for whoever still has to answer."""
        waits_for = set(self._backend.unanswered())
        self.running = {g: job for g, job in self.running.items() if g in waits_for}
        for g in waits_for.difference(self.running):
            self._note(g, Job('step', list(self._backend.groups[g]), slot))

    def pending(self, slot: int) -> None:
        """A step of all was given to the backend directly, and is not over."""
        now = time.monotonic()
        for g, ids in enumerate(self._backend.groups):
            self.running[g] = job = Job('step', list(ids), slot)
            job.begun = now

    def _dispatch(self, g: int, job: Job) -> None:
        if job.kind == 'step':
            self._backend.step(g, job.slot, job.ids, job.args)
        else:
            self._backend.ask(g, job.kind, job.args)
        self._note(g, job)

    def _note(self, g: int, job: Job) -> None:
        job.begun = time.monotonic()
        self.running[g] = job

    # ------------------------------------------------------------------ seeing them end
    @property
    def idle(self) -> bool:
        """Whether there is nothing to wait for."""
        return not (self.running or self.later)

    def settle(self) -> None:
        """Wait until nothing is under way."""
        while self.running or self.later:
            self.progress(None)

    def progress(self, end: float | None) -> None:
        """Sleep until something happens (at most until ``end``), and take in what has."""
        begin = time.monotonic()
        limit = min([self._deadline(g) for g in self.running] + [when for when, *_ in self.later], default=begin)
        left = (limit if end is None else min(limit, end)) - begin
        timeout = max(0.0, min(LONGEST_SLEEP_S, left if end is not None else max(left / 2, 0.02)))
        answers = self._backend.wait(timeout)
        now = time.monotonic()
        if now - begin - timeout > SUSPENDED_S:  # Ctrl-Z, a paused machine: the others were probably stopped, too
            for job in self.running.values():
                job.begun += now - begin - timeout
        for g, answer in answers:
            self._end(g, answer)
        if now >= limit:
            for g in [g for g in self.running if now >= self._deadline(g)]:
                job = self.running[g]
                self._end(g, self._backend.give_up(g, 'reset' if self._backend.resets(g) else job.kind))
            for item in [item for item in self.later if item[0] <= now]:
                self.later.remove(item)
                _, g, job = item
                if job.kind != 'start':
                    self.give(g, job)
                elif g not in self.running and g not in self._alive:
                    self.start(g)

    def _deadline(self, g: int) -> float:
        job = self.running[g]
        kind = 'begin' if self._backend.resets(g) else job.kind
        return job.begun + self._timeouts.get(kind, self._timeouts['step'])

    def _end(self, g: int, answer: Any) -> None:
        job = self.running.pop(g, None)
        if job is None:  # given before Ctrl-C, and forgotten
            return
        if job.kind == 'start':
            if isinstance(answer, WorkerLost):
                answer = EnvFault(job.ids[0], 'build', answer.kind, str(answer))
            if isinstance(answer, EnvFault):
                self.give_later(self._not_made(g, answer), g, Job('start', job.ids))
                return
            self._alive.add(g)
        if isinstance(answer, WorkerLost):
            self._alive.discard(g)
            self._lost(g, job, answer)
        else:
            self._ended(g, job, answer)
        if self.queues[g] and g not in self.running:
            if g in self._alive:
                self._dispatch(g, self.queues[g].popleft())
            else:
                self.start(g)
