"""The groups of envs of a manager: what each does next, what came of it, and what follows where it went wrong."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from nervex.envs.hosting.actions import rows_of
from nervex.envs.hosting.messages import EnvFault, Events, HostSetup
from nervex.worker.actor.env_manager.backend import Backend, WorkerLost
from nervex.worker.actor.env_manager.fault_log import FaultLog
from nervex.worker.actor.env_manager.step_block import EnvState

LONGEST_SLEEP_S = 1.0  # so that not more than this counts of the time for which the process was stopped
SUSPENDED_S = 0.5  # a sleep that takes so much longer than asked for was no sleep


class Job(NamedTuple):
    """What a group is to do: 'start' (make its envs), 'step' some envs, or one of ``EnvHost.obey``'s ('begin', ...)."""

    kind: str
    ids: list[int]
    args: Any = ()


class Groups:
    """
    Overview:
        A group has at most one job. Without one it is given what comes next: to make its envs, if it was lost and there
        is something to do for them; to begin the episodes that are due; then what is queued. Steps and beginnings
        gather in ``results`` (with ``ended``, ``infos``) and ``ready`` until they are delivered, faults in
        ``abnormal``.
    Arguments:
        - setup (:obj:`HostSetup`): what all envs are made from, as things stand
    Interfaces:
        make, use, step, begin, take, settle, progress, restart, ask, close_episode
    """

    def __init__(
        self,
        backend: Backend,
        cfg: dict,
        together: bool,
        setup: HostSetup,
        faults: FaultLog,
    ) -> None:
        n = backend.groups[-1].stop
        self.backend, self.faults, self._cfg, self._together = backend, faults, cfg, together
        self.setup, self._renews = setup, cfg['retry_type'] == 'renew'
        self._episode_num, self._auto_reset = setup.episode_num, cfg['auto_reset']
        self._timeouts = dict(step=cfg['step_timeout'], begin=cfg['reset_timeout'])
        self._timeouts['start'] = cfg['connect_timeout'] + cfg['reset_timeout']  # the first one resets an env, too
        self._group_of = {i: g for g, ids in enumerate(backend.groups) for i in ids}
        self.states, self.episodes = [EnvState.VOID] * n, [0] * n
        self.slot = 0  # of the memory: where steps and beginnings write
        self.ready = np.zeros(n, bool)  # envs that wait for an action
        self.stepping: set[int] = set()  # envs that have an action and have not answered
        self.beginning: set[int] = set()  # envs whose episode is about to begin ...
        self._due: dict[int, tuple[float, bool]] = {}  # ... those that nobody was told: when, and whether in a new env
        self.results: list[int] = []  # envs whose step was not delivered yet ...
        self.ended: set[int] = set()  # ... those of them whose episode has ended
        self.infos: dict[int, dict] = {}
        self.abnormal: set[int] = set()  # envs whose episode was lost since the last delivery
        self.jobs: dict[int, Job] = {}  # under way ...
        self._since: dict[int, float] = {}  # ... and when they were given
        self._queues: list[deque[Job]] = [deque() for _ in backend.groups]
        self._wanting: set[int] = set()  # groups that are to be given something
        self._alive: set[int] = set()
        self._not_before = [0.0] * len(backend.groups)  # when a start that failed may be tried again
        self._answers: dict[int, Any] = {}  # group -> what it was asked for
        self._described: Any = None  # what the first group says of its envs
        self._in_use = False

    # ------------------------------------------------------------------ beginning
    def make(self) -> tuple[Any, Any]:
        """Make all envs; answers what the first one says of itself, and its first observation."""
        self._wanting.update(range(len(self._queues)))
        while len(self._alive) < len(self._queues):
            self.progress()
        self._timeouts['start'] = self._cfg['connect_timeout']
        return self._described

    def use(self) -> None:
        """There is memory to write to now: begin the first episodes."""
        for g in range(len(self._queues)):
            self.backend.attach(g)
        self._in_use = True
        self.begin(self._group_of)
        self.settle()

    # ------------------------------------------------------------------ giving
    def step(self, ids: list[int], actions: Any) -> None:
        """Have envs step, with a row of actions each."""
        self.ready[ids] = False
        self.stepping.update(ids)
        if len(self._queues) == 1 and ids == sorted(ids):
            self._queue(0, Job('step', ids, actions))
            return
        rows: dict[int, list[int]] = {}
        for k in sorted(range(len(ids)), key=ids.__getitem__):
            rows.setdefault(self._group_of[ids[k]], []).append(k)
        for g, mine in rows.items():
            self._queue(g, Job('step', [ids[k] for k in mine], rows_of(actions, mine)))

    def begin(self, ids: Iterable[int], when: float = 0.0, renew: bool = False) -> None:
        """Have episodes begin, not before ``when``; ``renew`` makes the envs anew."""
        for i in ids:
            self.states[i], self.ready[i] = EnvState.RESET, False
            self._due[i] = when, renew
            self.beginning.add(i)
            self._wanting.add(self._group_of[i])

    def _queue(self, g: int, job: Job) -> None:
        if g in self._alive and g not in self.jobs and g not in self._wanting:  # 2 us faster
            self._give(g, job)
            return
        self._queues[g].append(job)
        self._wanting.add(g)

    def _employ(self, g: int, now: float) -> float:
        """Give a group what comes next; tells when to look again if that is to wait."""
        if g in self.jobs:
            return math.inf
        if g not in self._alive:
            if now < self._not_before[g]:
                return self._not_before[g]
            self._give(g, Job('start', list(self.backend.groups[g])))
            return math.inf
        queue, due = self._queues[g], [i for i in self.backend.groups[g] if i in self._due]
        ids = [i for i in due if self._due[i][0] <= now]
        if ids:
            how = []
            for i in ids:
                _, renew = self._due.pop(i)
                self.setup.renewed[i] += renew
                how.append((renew, self.setup.reset_kwargs[i], self.episodes[i] + (i in self.ended)))
            self._give(g, Job('begin', ids, (self.slot, ids, how)))
        elif queue:
            self._give(g, queue.popleft())
        elif due:
            return min(self._due[i][0] for i in due)
        if not queue and len(ids) == len(due):
            self._wanting.discard(g)
        return math.inf

    def _give(self, g: int, job: Job) -> None:
        if job.kind == 'start':
            for i in job.ids if self._in_use else ():  # they do not replay the episodes of their predecessors
                self.setup.renewed[i] += 1
            self.backend.launch(g, self.setup.part(self.backend.groups[g], g == 0 and self._described is None))
        elif job.kind == 'step':
            self.backend.step(g, self.slot, job.ids, job.args)
        else:
            self.backend.ask(g, job.kind, job.args)
        self._note(g, job)

    def _note(self, g: int, job: Job) -> None:
        self.jobs[g], self._since[g] = job, time.monotonic()

    def watch(self, groups: Iterable[int]) -> None:
        """A step of all was given to the backend directly, and these are not over."""
        for g in groups:
            self._note(g, Job('step', list(self.backend.groups[g])))

    def resume(self) -> None:
        """After Ctrl-C in a step: go on to wait for whoever still has to answer."""
        left = set(self.backend.unanswered())
        self.jobs = {g: job for g, job in self.jobs.items() if g in left}
        self.watch(left.difference(self.jobs))

    # ------------------------------------------------------------------ waiting
    def settle(self) -> None:
        """Wait until nothing is under way."""
        while self.jobs or self._wanting:
            self.progress()

    def progress(self, end: float | None = None) -> None:
        """Give what there is to do, sleep until something happens (at most until ``end``), and take in what has."""
        begin = time.monotonic()
        if self.beginning and not self.jobs and not self._wanting:  # a vectorised env begins them in a step of nobody
            self._queue(0, Job('step', []))
        limits = [self._employ(g, begin) for g in sorted(self._wanting)]
        limit = min(limits + [self._deadline(g) for g in self.jobs], default=begin)
        timeout = max(0.0, min(LONGEST_SLEEP_S, (limit if end is None else min(limit, end)) - begin))
        answers = self.backend.wait(timeout)
        now = time.monotonic()
        if now - begin - timeout > SUSPENDED_S:  # Ctrl-Z, a paused machine: the others were probably stopped, too
            self._since = {g: since + now - begin - timeout for g, since in self._since.items()}
        for g, answer in answers:
            self._end(g, answer)
        if now >= limit:
            for g in [g for g in self.jobs if now >= self._deadline(g)]:
                self._end(g, self.backend.give_up(g, self._busy_with(g)))

    def _deadline(self, g: int) -> float:
        return self._since[g] + self._timeouts.get(self._busy_with(g), self._timeouts['step'])

    def _busy_with(self, g: int) -> str:
        return 'begin' if self.backend.resets(g) else self.jobs[g].kind

    # ------------------------------------------------------------------ what a job has brought
    def _end(self, g: int, answer: Any) -> None:
        job = self.jobs.pop(g, None)
        if job is None:  # given before Ctrl-C, and forgotten
            return
        if job.kind == 'start':
            self._started(g, answer)
        elif isinstance(answer, WorkerLost):
            self._lost(g, job, answer)
        elif job.kind not in ('step', 'begin'):
            self._answers[g] = answer
        else:
            if isinstance(answer, EnvFault):  # the host itself has failed
                events = Events()
                phase = 'step' if job.kind == 'step' else 'reset'
                events.faults = [answer._replace(env_id=i, phase=phase) for i in job.ids]
                answer = events
            if job.kind == 'step':
                self.take(job.ids, answer)
            else:
                faults, waiting = ((), ()) if answer is None else (answer.faults, answer.waiting or ())
                self._begun(set(job.ids).difference(waiting, [fault.env_id for fault in faults]))
                for fault in faults:
                    self._try_again(fault, self._renews)

    def _started(self, g: int, answer: Any) -> None:
        first = self.backend.groups[g].start
        if isinstance(answer, WorkerLost):
            answer = EnvFault(first, 'build', answer.kind, str(answer))
        if isinstance(answer, EnvFault):
            if not self._in_use and (answer.phase, answer.kind) == ('build', 'error'):
                raise self.faults.error(answer)  # its code says no, and will again
            self.states[answer.env_id] = EnvState.ERROR
            self.faults.tried_in_vain(answer, ('start', g))
            self._not_before[g] = time.monotonic() + self._cfg['retry_waiting_time']
            self._wanting.add(g)
            return
        self.faults.tried_well(('start', g))
        self._alive.add(g)
        if self._in_use:
            self.backend.attach(g)
        else:
            self._described = self._described or answer
            for i in self.backend.groups[g]:
                self.states[i] = EnvState.INIT

    def take(self, ids: list[int], events: Events | None) -> None:
        """A step of these envs."""
        if events is not None:
            ids = ids if events.stepped is None else events.stepped
            self.ended.update(events.finished)
            self.infos.update(events.infos() if callable(events.infos) else events.infos)
            self.now_waiting(events)
            for fault in events.faults:
                if fault.phase == 'reset':  # the automatic reset after a good episode: one try is used up
                    self._try_again(fault, self._renews)
                    continue
                ids = [i for i in ids if i != fault.env_id]
                self._drop(fault)
                self.begin([fault.env_id], renew=self._renews)
        self.results += ids
        self.stepping.difference_update(ids)

    def now_waiting(self, events: Events) -> None:
        """Envs of a vectorised env have no observation now, and those that had none may have one."""
        if events.waiting is not None:
            self._begun(self.beginning.difference(events.waiting))
            self.beginning.update(i for i in events.waiting if self.states[i] is not EnvState.DONE)

    def _begun(self, ids: set[int]) -> None:
        """These envs have the first observation of an episode."""
        for i in ids:
            self.faults.tried_well(i)
            self.states[i], self.ready[i] = EnvState.RUN, True
        self.beginning -= ids

    @property
    def goes_on(self) -> bool:
        """Whether an env waits for an action, or will when the results are delivered or its episode has begun."""
        last = self._episode_num - 1
        stepped = any(i not in self.ended or self.episodes[i] < last for i in self.results)
        return bool(stepped or self.beginning or self.ready.any())

    def close_episode(self, i: int) -> bool:
        """The end of an episode was delivered; answers whether the env has begun the next one."""
        self.episodes[i] += 1
        if self.episodes[i] < self._episode_num and self._auto_reset:
            if i in self.beginning:
                self.ready[i] = False
            elif self._together:
                return True
            else:
                self.begin([i])
            return False
        self.states[i] = EnvState.DONE if self.episodes[i] >= self._episode_num else EnvState.RESET
        self.ready[i] = False
        self.beginning.discard(i)
        return False

    # ------------------------------------------------------------------ faults
    def _drop(self, fault: EnvFault, strike: bool = True) -> None:
        """An unfinished episode is lost."""
        i = fault.env_id
        self.stepping.discard(i)
        self.ready[i] = False
        self.abnormal.add(i)
        if strike:
            self.states[i] = EnvState.ERROR  # and stays so if this was one fault too many
            self.faults.strike(fault)

    def _try_again(self, fault: EnvFault, renew: bool) -> None:
        """A reset that failed is tried again after a pause."""
        self.states[fault.env_id] = EnvState.ERROR
        self.faults.tried_in_vain(fault, fault.env_id)
        self.begin([fault.env_id], time.monotonic() + self._cfg['retry_waiting_time'], renew)

    def _lost(self, g: int, job: Job, lost: WorkerLost) -> None:
        """A group is gone: whatever its envs were doing is lost, and they begin anew."""
        self._alive.discard(g)
        self._queues[g] = deque(other for other in self._queues[g] if other.kind != 'step')
        again, resets, struck = [], [], False
        for i in self.backend.groups[g]:
            fault = EnvFault(i, 'reset' if job.kind == 'begin' else 'step', lost.kind, str(lost))
            if i in self.beginning:
                if job.kind == 'begin' and i in job.ids:
                    resets.append(fault)
                else:  # it was to begin anyway
                    again.append(i)
            elif i == lost.ended:  # its step was good
                self.take([i], None)
                self.ended.add(i)
                resets.append(fault._replace(phase='reset'))
            elif i in self.ended:
                again += [i] if self._together else []  # else delivering its end begins the next
            elif self.states[i] is EnvState.RUN:
                self.results = [r for r in self.results if r != i]
                again.append(i)
                strike = i in job.ids and job.kind != 'begin' and not (struck and lost.one_fault)
                self._drop(fault, strike)
                struck = struck or strike
        if lost.one_fault and not struck:
            self.faults.record(EnvFault(self.backend.groups[g].start, 'step', lost.kind, str(lost)))
        if job.kind not in ('step', 'begin'):
            self._answers[g] = lost
        self.begin(again)
        for fault in resets:
            self._try_again(fault, False)

    # ------------------------------------------------------------------ between steps
    def restart(self, ids: list[int]) -> None:
        """Drop what these envs have done and were to do, and begin them anew; episodes count from 0 again."""
        self.results = [i for i in self.results if i not in ids]
        self.ended.intersection_update(self.results)
        self.stepping.difference_update(ids)
        for i in ids:
            self.episodes[i] = 0
        self.begin(ids)
        self.settle()
        self.abnormal.difference_update(ids)

    def ask(self, name: str, ids: list[int], args: Callable[[list[int]], tuple], needed: bool = True) -> list[Any]:
        """
        Overview:
            Have the hosts of these envs run a job when nothing else is under way; one answer an env.
        Arguments:
            - args (:obj:`Callable`): env ids of a group -> arguments
            - needed (:obj:`bool`): False: a group that is lost over it is no error
        """
        self.settle()
        self._answers = {}
        asked: dict[int, list[int]] = {}
        for i in ids:
            asked.setdefault(self._group_of[i], []).append(i)
        for g, mine in asked.items():
            self._queue(g, Job(name, list(self.backend.groups[g]), args(mine)))
        self.settle()
        found: dict[int, Any] = {}
        for g, mine in asked.items():
            answer = self._answers.get(g)
            if isinstance(answer, WorkerLost) and needed:
                raise answer
            if isinstance(answer, EnvFault):
                missing = 'AttributeError' in answer.text.rsplit('\n', 1)[-1]
                raise (AttributeError if missing else RuntimeError)(
                    f'in the subprocess of env {answer.env_id}:\n{answer.text}'
                )
            found.update(zip(mine, answer if isinstance(answer, list) else [None] * len(mine)))
        return [found[i] for i in ids]
