"""The jobs of an asynchronous manager's workers: giving them, seeing them end, replacing workers that are lost."""

import time
from typing import Any

import numpy as np

from nervex.envs.hosting.host import EnvFault
from nervex.envs.hosting.shared import ASK, STEP_ALL, STEP_SOME
from nervex.envs.hosting.store import SLOTS
from nervex.worker.actor.env_manager.step_block import EnvState
from nervex.worker.actor.env_manager.worker_pool import LONGEST_SLEEP_S, WorkerLost


class Job:
    """What a worker is busy with: 'step' or 'begin' of some envs, or 'start' (making its envs)."""

    __slots__ = ('deadline', 'ids', 'kind', 'slot')

    def __init__(self, kind: str, ids: list[int], slot: int, timeout: float) -> None:
        self.kind, self.ids, self.slot, self.deadline = kind, ids, slot, time.monotonic() + timeout


class AsyncJobs:
    """
    Overview:
        A worker has at most one job: to step or begin some of its envs, or to make them. What comes meanwhile waits in
        its queue. Ended steps go to ``_results``, envs with an observation to ``_waiting``, lost episodes to
        ``_abnormal``.
    """

    # ------------------------------------------------------------------ giving work to workers
    def _give(self, w: int, kind: str, ids: list[int], renew: bool = False) -> None:
        if w in self._jobs:
            self._queues[w].append((kind, ids, renew))
        elif self._pool.alive(w):
            self._dispatch(w, kind, ids, renew)
        else:
            self._queues[w].append((kind, ids, renew))
            self._start(w)

    def _dispatch(self, w: int, kind: str, ids: list[int], renew: bool) -> None:
        pool, control = self._pool, self._pool.control
        slot = self._worker_slot[w] = (self._worker_slot[w] + 1) % SLOTS
        if kind == 'begin':
            self._jobs[w] = Job(kind, ids, slot, self._cfg['reset_timeout'])
            for i in ids:
                self._states[i] = EnvState.RESET
                self._renewed[i] += renew
            pool.command(w, ASK, slot)
            pool.send(w, self._begin_request(w, ids, slot, renew, False))
            return
        self._jobs[w] = Job(kind, ids, slot, self._cfg['step_timeout'])
        mine = pool.workers[w].ids
        if len(ids) == len(mine):
            pool.command(w, STEP_ALL, slot)
        else:
            control.chosen[mine.start : mine.stop] = 0
            control.chosen[ids] = 1
            pool.command(w, STEP_SOME, slot)
        if control.actions is None:
            pool.send(w, _joined([self._action_of[i] for i in sorted(ids)]))

    def _start(self, w: int) -> None:
        ids = list(self._pool.workers[w].ids)
        for i in ids:
            self._renewed[i] += 1
        self._pool.start(w, describe=False)
        self._pool.watch(w, True)
        self._jobs[w] = Job('start', ids, 0, self._cfg['connect_timeout'])

    # ------------------------------------------------------------------ seeing what has happened
    def _progress(self, end: float | None) -> None:
        """Sleep until something happens (at most until ``end``), and take in what has."""
        now = time.monotonic()
        limit = min([job.deadline for job in self._jobs.values()] + [t for t, *_ in self._later], default=now)
        left = (limit if end is None else min(limit, end)) - now
        suspended = self._pool.arrivals(min(LONGEST_SLEEP_S, left if end is not None else max(left / 2, 0.02)))
        for job in self._jobs.values() if suspended else ():
            job.deadline += suspended
        now, control = time.monotonic(), self._pool.control
        for w, job in list(self._jobs.items()):
            if job.kind == 'start':
                if self._pool.has_spoken(w):
                    self._introduce_late(w)
                elif now >= job.deadline:
                    limit_s = self._cfg['connect_timeout']
                    self._lose(w, WorkerLost('timeout', f'making the envs took longer than {limit_s} s'))
            elif control.done[w] == control.asked[w]:
                self._finish_job(w, job)
            elif self._pool.has_ended(w):
                self._lose(w, self._pool.died(w))
            elif now >= job.deadline:
                self._lose(w, self._pool.too_late(w))
        for item in [item for item in self._later if item[0] <= now]:
            self._later.remove(item)
            self._give(*item[1:])

    def _finish_job(self, w: int, job: Job) -> None:
        try:
            mail = self._pool.mail(w, self._cfg['step_timeout'])
        except WorkerLost as lost:
            self._lose(w, lost)
            return
        del self._jobs[w]
        if job.kind == 'step':
            self._end_steps(job, mail if isinstance(mail, tuple) else ({}, [], None), self._pool.control.news[w])
        else:
            self._end_begins(w, job, mail)
        if self._queues[w] and w not in self._jobs:
            self._dispatch(w, *self._queues[w].popleft())

    def _end_steps(self, job: Job, mail: tuple, news: int) -> None:
        infos, faults, objects = mail
        self._take_objects(job.slot, objects)
        bad = {fault.env_id: fault for fault in faults}
        for i in job.ids:
            if i in bad:
                self._abnormal.add(i)
                self._states[i] = EnvState.ERROR
                self.faults.strike(bad[i])
                self._give(self._worker_of[i], 'begin', [i], self._cfg['retry_type'] == 'renew')
            else:
                self._results.append((i, job.slot, bool(news and self._store.done[i]), infos.get(i)))
                self._tries[i] = 0

    def _end_begins(self, w: int, job: Job, mail: Any) -> None:
        faults, objects = mail if isinstance(mail, tuple) else ([mail], None)
        self._take_objects(job.slot, objects)
        bad = {fault.env_id: fault for fault in faults}
        for i in job.ids:
            if i in bad:
                self._try_again(i, bad[i])
            else:
                self._tries[i], self._slot_of[i], self._states[i] = 0, job.slot, EnvState.RUN
                self._waiting.add(i)

    def _try_again(self, i: int, fault: EnvFault) -> None:
        """A reset that failed is tried again after a pause, ``max_retry`` times."""
        self.faults.record(fault)
        self._tries[i] += 1
        if self._tries[i] > self._max_retry:
            self._states[i] = EnvState.ERROR
            raise self.faults.error(fault)
        when = time.monotonic() + self._cfg['retry_waiting_time']
        self._later.append((when, self._worker_of[i], 'begin', [i], self._cfg['retry_type'] == 'renew'))

    def _lose(self, w: int, lost: WorkerLost) -> None:
        """A worker is gone: whatever its envs were doing is lost, and they begin anew in a new process."""
        job = self._jobs.pop(w)
        if job.kind == 'start':
            self._pool.kill(w)
        self._queues[w].clear()
        waiting_for = {i for item in self._later for i in item[3]}
        for i in self._pool.workers[w].ids:
            if self._states[i] not in (EnvState.RUN, EnvState.RESET, EnvState.ERROR):
                continue
            fault = EnvFault(
                i,
                'build' if job.kind == 'start' else 'reset' if i in job.ids and job.kind == 'begin' else 'step',
                lost.kind,
                str(lost),
            )
            self._waiting.discard(i)
            if fault.phase == 'step':
                undelivered = [r for r in self._results if r[0] == i]
                self._results = [r for r in self._results if r[0] != i or r[2]]
                if any(r[2] for r in undelivered):
                    continue  # its episode had ended; delivering it begins the next one
                self._abnormal.add(i)
                if i in job.ids:
                    self.faults.strike(fault)
                self._states[i] = EnvState.RESET
                self._give(w, 'begin', [i])
            elif i not in waiting_for:
                self._try_again(i, fault)

    def _lost_between(self, w: int, lost: WorkerLost) -> None:
        """A worker was lost while all was at rest."""
        self._jobs[w] = Job('step', list(self._pool.workers[w].ids), 0, 0.0)
        self._lose(w, lost)

    def _introduce_late(self, w: int) -> None:
        """A worker that was started again has made its envs, or could not."""
        self._pool.watch(w, False)
        try:
            answer = self._pool.introduce(w, 0.0)
        except WorkerLost as lost:
            self._lose(w, lost)
            return
        if isinstance(answer, EnvFault):
            self._lose(w, WorkerLost(answer.kind, answer.text))
            return
        self._pool.map(w)
        del self._jobs[w]
        if self._queues[w]:
            self._dispatch(w, *self._queues[w].popleft())


def _joined(parts: list[Any]) -> Any:
    """Actions that travel by pipe, in the order of the env ids."""
    if isinstance(parts[0], dict):
        return {k: _joined([p[k] for p in parts]) for k in parts[0]}
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else [row for part in parts for row in part]
