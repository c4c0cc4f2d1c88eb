"""SyncSubprocessEnvManager: envs in subprocesses that all step together."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from nervex.envs.hosting.actions import rows_of
from nervex.envs.hosting.host import EnvFault, Events
from nervex.envs.hosting.layout import put_leaves, tree_leaves
from nervex.envs.hosting.shared import STEP_SOME
from nervex.envs.hosting.waiting import cores
from nervex.envs.hosting.worker import WorkerSetup
from nervex.worker.actor.env_manager.asking import AsksWorkers
from nervex.worker.actor.env_manager.base_env_manager import BaseEnvManager
from nervex.worker.actor.env_manager.lockstep import make_lockstep
from nervex.worker.actor.env_manager.step_block import EnvStateError
from nervex.worker.actor.env_manager.worker_pool import WorkerLost, WorkerPool


class SyncSubprocessEnvManager(AsksWorkers, BaseEnvManager):
    """
    Overview:
        A subprocess holds ``envs_per_worker`` envs; a step returns when all have stepped. For envs whose steps take
        about the same time, more than some 50 us each. Observations, rewards, ends and actions lie in shared memory;
        only infos and errors travel by pipe. An env that raises, hangs or dies is restarted.

        ``hybrid=True`` is for cheap envs: this process steps its share, and as many children as there are further cores
        step the rest. An env in this process cannot be interrupted, and takes the run with it if it ends the process.
    """

    config = dict(
        max_retry=5,  # more than in-process: processes die for reasons that are not the env's
    )

    kind = 'subprocess'
    _together = True  # all envs step at the same time, so that it is worth while to wait awake
    _pool: WorkerPool | None = None
    _step_all: Callable | None = None
    _interrupted = False

    # ------------------------------------------------------------------ making the envs
    def _make_envs(self) -> tuple[Any, Any]:
        own, slices = self._shares()
        self.kind = 'hybrid' if own else type(self).kind
        self._own = range(own)
        self._renewed = [0] * self._env_num
        self._gone: dict[int, WorkerLost] = {}  # workers that were lost while nothing stepped; the next step tells
        self._worker_of = {i: w for w, ids in enumerate(slices) for i in ids}
        self._pool = pool = self._new_pool(slices)
        for w in range(len(slices)):
            pool.start(w, describe=w == 0 and not own)
        answer = None
        if own:
            self._host = self._new_host(self._own)
            for i in self._own:
                self._retry(i, 'build', lambda i=i: self._host.build(i))
            answer = self._retry(0, 'reset', self._host.first_observation)
        for w in range(len(slices)):
            said = self._introduced(w, describe=w == 0 and not own, running=True)
            answer = answer or said
        return answer

    def _new_pool(self, slices: list[range]) -> WorkerPool:
        return WorkerPool(
            self._env_num,
            slices,
            self._setup,
            self._cfg['context'],
            not self._cfg['shared_memory'],
            spin_allowed=self._together,
        )

    def _shares(self) -> tuple[int, list[range]]:
        """How many envs this process steps, and the ids of each worker."""
        n = self._env_num
        if self._cfg['hybrid']:
            parts = max(1, min(cores(), n))
            bounds = [n * p // parts for p in range(parts + 1)]
            return bounds[1], [range(a, b) for a, b in pairwise(bounds[1:])]
        size = int(self._cfg['envs_per_worker'])
        if size < 1:
            raise ValueError(f'env.manager.envs_per_worker: must be >= 1, got {size}')
        return 0, [range(a, min(a + size, n)) for a in range(0, n, size)]

    def _setup(self, w: int, ids: range, describe: bool) -> WorkerSetup:
        options = dict(
            auto_reset=self._auto_reset_in_worker,
            episode_num=self._episode_num,
            spin=self._pool.spin,
            together=self._together,
            describe=describe,
            renewed=[self._renewed[i] for i in ids],
            episodes=[self._episodes[i] for i in ids],
            seeds=[None if self._seeds[i] is None else (self._seeds[i], self._dynamic_seed) for i in ids],
            reset_kwargs=[self._reset_param.get(i, {}) for i in ids],
        )
        return WorkerSetup(w, ids.start, self._env_fn, [self._env_cfg[i] for i in ids], options)

    @property
    def _auto_reset_in_worker(self) -> bool:
        return bool(self._cfg['auto_reset'])

    def _introduced(self, w: int, describe: bool, running: bool) -> Any:
        """Wait until a worker has made its envs; it is started again (``max_retry`` times) if it cannot."""
        ids = self._pool.workers[w].ids
        timeout = self._cfg['connect_timeout'] + (self._cfg['reset_timeout'] if describe else 0)
        for _ in range(self._max_retry + 1):
            if not running:
                self._pool.start(w, describe)
            running = False
            try:
                answer = self._pool.introduce(w, timeout)
                fault = answer if isinstance(answer, EnvFault) else None
            except WorkerLost as lost:
                fault = EnvFault(ids.start, 'build', lost.kind, str(lost))
            if fault is None:
                return answer
            self.faults.record(fault)
        raise self.faults.error(fault)

    def _make_store(self, layout: Any, size: int) -> None:
        private = not self._cfg['shared_memory']
        by_pipe = private or any(leaf.is_object for leaf in tree_leaves(layout))
        self._shares_all = not by_pipe
        store = self._pool.share(layout, size, self._action_rows.memory(), self._env_info.act_space, by_pipe)
        for w in range(len(self._pool.workers)):
            self._pool.map(w)
        self._use(store)
        if self._own:
            self._host.attach(store, 0)
        timeouts = self._cfg['step_timeout'], self._cfg['reset_timeout']
        self._step_all = make_lockstep(
            self._pool, self._action_rows, self._host, len(self._own), timeouts, self._collect
        )

    # ------------------------------------------------------------------ stepping
    def _step(self, slot: int, actions: Any, which: Sequence[int] | None) -> Events | None:
        if self._interrupted:
            raise EnvStateError('the last step was interrupted half-way; call reset() to begin anew')
        self._interrupted = True  # until the step is over
        if self._gone:
            events = self._step_others(slot, actions, which)
        elif which is None:
            events = self._step_all(slot, actions)
        else:
            events = self._step_some(slot, actions, which)
        self._interrupted = False
        return events

    def _step_some(self, slot: int, actions: Any, which: Sequence[int]) -> Events | None:
        pool, control = self._pool, self._pool.control
        if control.actions is not None:
            control.actions[list(which)] = actions
        control.chosen[:] = 0
        control.chosen[list(which)] = 1
        position = {i: k for k, i in enumerate(which)}
        workers = sorted({self._worker_of[i] for i in which if i in self._worker_of})
        for w in workers:
            pool.command(w, STEP_SOME, slot)
            if control.actions is None:
                pool.send(w, rows_of(actions, [position[i] for i in pool.workers[w].ids if i in position]))
        events, mine = None, [i for i in which if i in self._own]
        if mine:
            rows = self._action_rows.split(rows_of(actions, [position[i] for i in mine]), self._host.action_form)
            events = self._host.step(slot, rows, mine)
        lost = pool.wait(workers, self._cfg['step_timeout'], self._cfg['reset_timeout'])
        return self._collect(slot, workers, lost, events, set(which))

    def _step_others(self, slot: int, actions: Any, which: Sequence[int] | None) -> Events | None:
        """A step after workers were lost between two steps: their envs failed, the others step."""
        gone, self._gone = self._gone, {}
        which, actions = range(self._env_num) if which is None else which, self._action_rows.block(actions)
        kept = [k for k, i in enumerate(which) if self._worker_of.get(i) not in gone]
        events = self._step_some(slot, rows_of(actions, kept), [which[k] for k in kept]) if kept else None
        events = events or Events()
        for w, lost in gone.items():
            events.faults += [
                EnvFault(i, 'step', lost.kind, str(lost)) for i in self._pool.workers[w].ids if self._is_running(i)
            ]
        return events

    def _collect(
        self,
        slot: int,
        workers: Iterable[int],
        lost: dict[int, WorkerLost],
        events: Events | None,
        asked: set[int] | None = None,
    ) -> Events:
        """What the workers have to tell beside numbers."""
        events = events or Events()
        control = self._pool.control
        for w in workers:
            ids = self._pool.workers[w].ids
            if w not in lost:
                try:
                    self._read_mail(w, slot, events)
                except WorkerLost as error:
                    lost[w] = error
                else:
                    if control.news[w]:
                        events.finished += [i for i in ids if self._store.done[i] and (asked is None or i in asked)]
            if w in lost:
                self._note_lost(w, lost[w], events)
        return events

    def _note_lost(self, w: int, lost: WorkerLost, events: Events) -> None:
        """
        Overview:
            Faults of the envs of a worker that did not come back from a step. If it was lost while it began an env's
            next episode, that env's last step is good: it lies in the shared memory.
        """
        ids, resetting = self._pool.workers[w].ids, self._pool.control.resetting[w]
        for i in ids:
            if i - ids.start + 1 == resetting and self._store.done[i] and self._shares_all:
                events.finished.append(i)
                events.faults.append(EnvFault(i, 'reset', lost.kind, str(lost)))
            elif self._is_running(i):
                events.faults.append(EnvFault(i, 'step', lost.kind, str(lost)))

    def _read_mail(self, w: int, slot: int, events: Events) -> None:
        mail = self._pool.mail(w, self._cfg['step_timeout'])
        if isinstance(mail, EnvFault):
            events.faults.append(mail)
        elif mail is not None:
            infos, faults, objects = mail
            events.infos.update(infos)
            events.faults += faults
            self._take_objects(slot, objects)

    def _take_objects(self, slot: int, objects: list | None) -> None:
        for i, final, values in objects or ():
            row = self._store.final_rows[i] if final else self._store.rows[slot][i]
            put_leaves(row, values, everything=not self._cfg['shared_memory'])

    # ------------------------------------------------------------------ beginning episodes, also after faults
    def _begin(self, ids: Sequence[int], slot: int, renew: bool, fresh: bool) -> dict[int, EnvFault]:
        if self._interrupted:
            self._settle_interrupted()
        mine = [i for i in ids if i in self._own]
        failed: dict[int, EnvFault] = {}
        workers = sorted({self._worker_of[i] for i in ids if i in self._worker_of})
        for w in [w for w in workers if not self._pool.alive(w)]:
            fault = self._revive(w, slot, set(ids))
            if fault is not None:
                workers.remove(w)
                failed.update({i: fault._replace(env_id=i) for i in self._pool.workers[w].ids if i in ids})
        if renew:
            for i in ids:
                self._renewed[i] += 1
        requests = [self._begin_request(w, ids, slot, renew, fresh) for w in workers]
        answers = self._pool.ask(workers, requests, self._cfg['reset_timeout'])
        for w, answer in zip(workers, answers):
            if isinstance(answer, WorkerLost):
                failed.update(self._lost_in_reset(w, ids, answer))
            elif isinstance(answer, EnvFault):
                failed[answer.env_id] = answer
            else:
                faults, objects = answer
                failed.update({fault.env_id: fault for fault in faults})
                self._take_objects(slot, objects)
        if mine:
            failed.update(BaseEnvManager._begin(self, mine, slot, renew, fresh))
        return failed

    def _begin_request(self, w: int, ids: Sequence[int], slot: int, renew: bool, fresh: bool) -> tuple:
        low = self._pool.workers[w].ids.start
        chosen = [i for i in self._pool.workers[w].ids if i in ids]
        kwargs = {i - low: self._reset_param.get(i, {}) for i in chosen}
        return 'begin', (slot, [i - low for i in chosen], renew, kwargs, fresh)

    def _lost_in_reset(self, w: int, ids: Sequence[int], lost: WorkerLost) -> dict[int, EnvFault]:
        mates = [i for i in self._pool.workers[w].ids if i not in ids and self._is_running(i)]
        self._lost.update(mates)
        return {i: EnvFault(i, 'reset', lost.kind, str(lost)) for i in self._pool.workers[w].ids if i in ids}

    def _revive(self, w: int, slot: int, asked: set[int]) -> EnvFault | None:
        """Start a worker again, and the episodes of those of its envs that nobody else is about to restart."""
        ids = self._pool.workers[w].ids
        for i in ids:
            self._renewed[i] += 1
        self._gone.pop(w, None)
        self._pool.start(w, describe=False)
        try:
            answer = self._pool.introduce(w, self._cfg['connect_timeout'])
        except WorkerLost as lost:
            return EnvFault(ids.start, 'build', lost.kind, str(lost))
        if isinstance(answer, EnvFault):
            return answer
        self._pool.map(w)
        mates = [i for i in ids if i not in asked and self._is_running(i)]
        if mates:
            self._lost.update(mates)
            failed = self._begin(mates, slot, False, False)
            return next(iter(failed.values()), None)
        return None

    def _settle_interrupted(self) -> None:
        """After Ctrl-C in a step: let the workers finish, forget what they say."""
        workers = range(len(self._pool.workers))
        lost = self._pool.wait(workers, self._cfg['step_timeout'], self._cfg['reset_timeout'])
        for w in workers:
            if w not in lost:
                self._pool.mail(w, self._cfg['step_timeout'])
        self._interrupted = False

    # ------------------------------------------------------------------ the rest
    def _is_running(self, i: int) -> bool:
        return self._states[i].name in ('RUN', 'RESET')

    def _shut(self) -> None:
        for fault in self._pool.close() if self._pool is not None else ():
            self.faults.record(fault)
        self._pool = None
        super()._shut()
        self._host = self._store = self._step_all = None
        self._plain_blocks, self._ready_block = [], None
        self._interrupted = False
