"""AsyncSubprocessEnvManager: envs in subprocesses, answered as they get ready."""
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.host import EnvFault
from nervex.envs.hosting.layout import put_row, tree_map
from nervex.envs.hosting.shared import ASK, STEP_ALL, STEP_SOME
from nervex.envs.hosting.store import SLOTS
from nervex.worker.actor.env_manager.step_block import EnvState, StepBlock
from nervex.worker.actor.env_manager.subprocess_env_manager import SyncSubprocessEnvManager, rows_of
from nervex.worker.actor.env_manager.worker_pool import WorkerLost


class _Job:
    """What a worker is busy with: 'step' or 'begin' of some envs, or 'start' (making its envs)."""

    __slots__ = ('deadline', 'ids', 'kind', 'slot')

    def __init__(self, kind: str, ids: list[int], slot: int, timeout: float) -> None:
        self.kind, self.ids, self.slot, self.deadline = kind, ids, slot, time.monotonic() + timeout


class AsyncSubprocessEnvManager(SyncSubprocessEnvManager):
    """
    Overview:
        ``advance`` sends actions and answers with whichever envs have finished: as soon as ``wait_num`` have, or after
        ``step_wait_timeout`` if one has. For envs whose steps take uneven time. Episodes begin anew in the background,
        and so do envs that failed; ``observe`` waits only if no env at all is ready.
    """

    _together = False

    # ------------------------------------------------------------------ the block form
    asynchronous = True

    def observe(self) -> tuple[np.ndarray, Any]:
        while not self._offered() and self._beginning():
            self._progress(None)
        # Envs whose loss was not told yet come last, so that a policy forgets their old state before it acts again.
        offered = self._offered() or self._waiting
        ids = self.all_ids if len(offered) == self._env_num else np.array(sorted(offered), np.int64)
        return ids, self._gather([self._store.rows[self._slot_of[i]][i] for i in ids.tolist()])

    def _offered(self) -> set[int]:
        return self._waiting - self._abnormal if self._abnormal else self._waiting

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        self._check_open('advance')
        which = [self._check_id(i) for i in ids]
        if not self._waiting.issuperset(which) or len(set(which)) != len(which) or not (which or self._stepping()):
            self._refuse(which)
        if which:
            self._submit(which, actions)
        wanted = min(max(1, int(self._cfg['wait_num'])), self._stepping() + len(self._results))
        end = time.monotonic() + self._cfg['step_wait_timeout']
        while self._must_wait(wanted, end):
            self._progress(end if self._results or self._abnormal else None)
        return self._deliver()

    def _must_wait(self, wanted: int, end: float) -> bool:
        """Enough results, or some and the time is over? And will there be an env to go on with?"""
        if not self._stepping():
            return False
        have = len(self._results) + len(self._abnormal)
        if have >= wanted or (have and time.monotonic() >= end):
            goes_on = any(not r[2] for r in self._results) or self._waiting or self._beginning() or any(
                self._episodes[r[0]] + 1 < self._episode_num for r in self._results)
            return not goes_on
        return True

    def _submit(self, which: list[int], actions: Any) -> None:
        control = self._pool.control
        actions = self._action_rows.block(actions)
        if not isinstance(actions, dict) and len(actions) != len(which):
            raise ValueError(f'advance(): {len(which)} ids, but {len(actions)} actions')
        if control.actions is not None:
            control.actions[which] = actions
        else:
            for k, i in enumerate(which):
                self._action_of[i] = rows_of(actions, slice(k, k + 1))
        self._waiting.difference_update(which)
        by_worker: dict[int, list[int]] = {}
        for i in which:
            by_worker.setdefault(self._worker_of[i], []).append(i)
        for w, chosen in by_worker.items():
            self._give(w, 'step', chosen)

    def _deliver(self) -> StepBlock:
        """The block of all results so far."""
        results, self._results = self._results, []
        abnormal, self._abnormal = tuple(sorted(self._abnormal)), set()
        store, n = self._store, len(results)
        ids = np.array([r[0] for r in results], np.int64)
        reward = np.empty((n, *store.reward[0].shape[1:]), np.float32)
        done, truncated = np.zeros(n, bool), np.zeros(n, bool)
        returns, lengths, infos, rows = np.zeros(n), np.zeros(n, np.int64), {}, []
        for k, (i, slot, ended, info) in enumerate(results):
            reward[k] = store.reward[slot][i]
            rows.append(store.final_rows[i] if ended else store.rows[slot][i])
            if ended:
                done[k], truncated[k] = True, store.truncated[i]
                returns[k], lengths[k] = store.episode_return[i], store.episode_length[i]
            if info:
                infos[k] = info
        block = StepBlock(ids, self._gather(rows), reward, done, truncated, returns, lengths, infos, abnormal)
        for i, slot, ended, _ in results:
            self._slot_of[i] = slot
            if not ended:
                self._waiting.add(i)
                continue
            self._after_episode(i)
            if self._states[i] is EnvState.RUN:
                self._give(self._worker_of[i], 'begin', [i])
        if self.faults.suspects:
            self.faults.good_steps(ids.tolist(), ids[done].tolist())
        return block

    def _gather(self, rows: list[Any]) -> Any:
        """Rows as a fresh block."""
        block = tree_map(lambda leaf: np.empty((len(rows), *(() if leaf.is_object else leaf.shape)), leaf.dtype),
                         self._store.layout)
        for k, row in enumerate(rows):
            put_row(block, k, row)
        return block

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
            self._jobs[w] = _Job(kind, ids, slot, self._cfg['reset_timeout'])
            for i in ids:
                self._states[i] = EnvState.RESET
                self._renewed[i] += renew
            pool.command(w, ASK, slot)
            pool.send(w, self._begin_request(w, ids, slot, renew, False))
            return
        self._jobs[w] = _Job(kind, ids, slot, self._cfg['step_timeout'])
        mine = pool.workers[w].ids
        if len(ids) == len(mine):
            pool.command(w, STEP_ALL, slot)
        else:
            control.chosen[mine.start:mine.stop] = 0
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
        self._jobs[w] = _Job('start', ids, 0, self._cfg['connect_timeout'])

    # ------------------------------------------------------------------ seeing what has happened
    def _progress(self, end: float | None) -> None:
        """Sleep until something happens (at most until ``end``), and take in what has."""
        now = time.monotonic()
        limit = min([job.deadline for job in self._jobs.values()] + [t for t, *_ in self._later], default=now)
        self._pool.arrivals((limit if end is None else min(limit, end)) - now)
        now, control = time.monotonic(), self._pool.control
        for w, job in list(self._jobs.items()):
            if job.kind == 'start':
                if self._pool.has_spoken(w):
                    self._introduce_late(w)
                elif now >= job.deadline:
                    self._lose(w, WorkerLost('timeout', f'making the envs took longer than {self._cfg["connect_timeout"]} s'))
            elif control.done[w] == control.asked[w]:
                self._finish_job(w, job)
            elif self._pool.has_ended(w):
                self._lose(w, self._pool.died(w))
            elif now >= job.deadline:
                self._lose(w, self._pool.too_late(w))
        for item in [item for item in self._later if item[0] <= now]:
            self._later.remove(item)
            self._give(*item[1:])

    def _finish_job(self, w: int, job: _Job) -> None:
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

    def _end_steps(self, job: _Job, mail: tuple, news: int) -> None:
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

    def _end_begins(self, w: int, job: _Job, mail: Any) -> None:
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
            fault = EnvFault(i, 'build' if job.kind == 'start' else 'reset' if i in job.ids and job.kind == 'begin'
                             else 'step', lost.kind, str(lost))
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

    def _introduce_late(self, w: int) -> None:
        """A worker that was started again has made its envs, or could not."""
        self._pool.watch(w, False)
        try:
            answer = self._pool.introduce(w, 0.)
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

    # ------------------------------------------------------------------ life
    def _use(self, store: Any) -> None:
        super()._use(store)
        self._clear()

    def _clear(self) -> None:
        n, workers = self._env_num, len(self._pool.workers)
        self._waiting: set[int] = set()             # envs that wait for an action
        self._results: list[tuple] = []             # (id, slot, ended, info) of steps that were not delivered yet
        self._abnormal: set[int] = set()            # envs whose episode was lost since the last delivery
        self._jobs: dict[int, _Job] = {}
        self._queues: list[deque] = [deque() for _ in range(workers)]
        self._later: list[tuple] = []               # (when, worker, kind, ids, renew)
        self._tries, self._slot_of = [0] * n, [0] * n
        self._worker_slot = [0] * workers
        self._action_of: dict[int, Any] = {}

    def _reset(self, ids: list[int]) -> None:
        """Let everything that is under way come to its end, drop it, and begin these envs anew together."""
        while self._jobs or self._later:
            self._progress(None)
        others = {i for i in range(self._env_num) if i not in ids and self._states[i] is EnvState.RUN}
        slots = [max(self._worker_slot, default=0)]
        self._results = [r for r in self._results if r[0] in others]
        self._abnormal &= others
        slot = (slots[0] + 1) % SLOTS
        self._begin_all(ids, slot, fresh=True)
        for w in range(len(self._worker_slot)):
            self._worker_slot[w] = slot
        for i in ids:
            self._slot_of[i] = slot
            self._waiting.add(i)

    def _refresh(self) -> None:
        """After the launch: all envs are ready, in slot 0."""
        self._waiting = {i for i, state in enumerate(self._states) if state is EnvState.RUN}

    def _shares(self) -> tuple[int, list[range]]:
        if self._cfg['hybrid']:
            raise ValueError('env.manager.hybrid: only the sync manager steps envs in the main process')
        return super()._shares()

    @property
    def _auto_reset_in_worker(self) -> bool:
        return False  # an end is answered first, the next episode begins in the background

    # ------------------------------------------------------------------ what is asked about
    def _stepping(self) -> int:
        """Envs that have an action and have not answered."""
        running = sum(len(job.ids) for job in self._jobs.values() if job.kind == 'step')
        return running + sum(len(item[1]) for queue in self._queues for item in queue if item[0] == 'step')

    def _beginning(self) -> bool:
        """Whether an episode is about to begin somewhere."""
        return bool(self._later) or any(job.kind != 'step' for job in self._jobs.values()) or any(
            item[0] == 'begin' for queue in self._queues for item in queue)

    def _ready_ids(self) -> Sequence[int]:
        return [] if self._closed else sorted(self._waiting)

    def _restarted_obs(self, ids: Iterable[int]) -> Any:
        """Restarts go on in the background: wait for these."""
        while not self._waiting.issuperset(ids):
            self._progress(None)
        return self._gather([self._store.rows[self._slot_of[i]][i] for i in ids])

    def _call(self, name: str, calls: list | None, ids: Iterable[int]) -> list[Any]:
        while self._jobs or self._later:
            self._progress(None)
        return super()._call(name, calls, ids)

    def _send_seeds(self, ids: list[int]) -> None:
        while self._jobs or self._later:
            self._progress(None)
        super()._send_seeds(ids)


def _joined(parts: list[Any]) -> Any:
    """Actions that travel by pipe, in the order of the env ids."""
    if isinstance(parts[0], dict):
        return {k: _joined([p[k] for p in parts]) for k in parts[0]}
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else [row for part in parts for row in part]


