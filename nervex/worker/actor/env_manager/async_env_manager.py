"""AsyncSubprocessEnvManager: envs in subprocesses, answered as they get ready."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import rows_of
from nervex.envs.hosting.layout import put_row, tree_map
from nervex.envs.hosting.store import SLOTS
from nervex.worker.actor.env_manager.async_jobs import AsyncJobs, Job
from nervex.worker.actor.env_manager.step_block import EnvState, StepBlock
from nervex.worker.actor.env_manager.subprocess_env_manager import SyncSubprocessEnvManager


class AsyncSubprocessEnvManager(AsyncJobs, SyncSubprocessEnvManager):
    """
    Overview:
        ``advance`` sends actions and answers with whichever envs have finished: as soon as ``wait_num`` have, or after
        ``step_wait_timeout`` if one has. For envs whose steps take uneven time. Episodes begin anew in the background,
        and so do envs that failed; ``observe`` waits only if no env at all is ready.
    """

    kind = 'async_subprocess'
    _together = False

    # ------------------------------------------------------------------ the block form
    asynchronous = True

    def observe(self) -> tuple[np.ndarray, Any]:
        while not self._offered() and self._beginning():
            self._progress(None)
        # Envs whose loss was not told yet come last, so that a policy forgets their old state before it acts again.
        offered = self._offered() or self._waiting
        ids = np.array(sorted(offered), np.int64)
        return ids, self._gather([self._store.rows[self._slot_of[i]][i] for i in ids.tolist()])

    def _offered(self) -> set[int]:
        return self._waiting - self._abnormal if self._abnormal else self._waiting

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        self._check_open('advance')
        which = [self._check_id(i) for i in ids]
        busy = self._results or self._stepping() or self._beginning()
        if not self._waiting.issuperset(which) or len(set(which)) != len(which) or not (which or busy):
            self._refuse(which)
        if which:
            self._submit(which, actions)
        elif not self._results and not self._stepping():  # none of the ready envs is wanted: one more may get ready
            self._progress(None)
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
            goes_on = (
                any(not r[2] for r in self._results)
                or self._waiting
                or self._beginning()
                or any(self._episodes[r[0]] + 1 < self._episode_num for r in self._results)
            )
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
        whole = self._are_all(ids)
        block = StepBlock(ids, self._gather(rows), reward, done, truncated, returns, lengths, infos, abnormal, whole)
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
        block = tree_map(
            lambda leaf: np.empty((len(rows), *(() if leaf.is_object else leaf.shape)), leaf.dtype), self._store.layout
        )
        for k, row in enumerate(rows):
            put_row(block, k, row)
        return block

    # ------------------------------------------------------------------ life
    def _use(self, store: Any) -> None:
        super()._use(store)
        self._clear()

    def _clear(self) -> None:
        n, workers = self._env_num, len(self._pool.workers)
        self._waiting: set[int] = set()  # envs that wait for an action
        self._results: list[tuple] = []  # (id, slot, ended, info) of steps that were not delivered yet
        self._abnormal: set[int] = set()  # envs whose episode was lost since the last delivery
        self._jobs: dict[int, Job] = {}
        self._queues: list[deque] = [deque() for _ in range(workers)]
        self._later: list[tuple] = []  # (when, worker, kind, ids, renew)
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
        running = 0
        for job in self._jobs.values():
            if job.kind == 'step':
                running += len(job.ids)
        return running + sum(len(item[1]) for item in self._queued() if item[0] == 'step')

    def _beginning(self) -> bool:
        """Whether an episode is about to begin somewhere."""
        if self._later:
            return True
        for job in self._jobs.values():
            if job.kind != 'step':
                return True
        return any(item[0] == 'begin' for item in self._queued())

    def _queued(self) -> list[tuple]:
        """What waits for a worker to be free; seldom anything, with one env a worker."""
        return [item for queue in self._queues for item in queue] if any(self._queues) else []

    def _ready_ids(self) -> list[int]:
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
