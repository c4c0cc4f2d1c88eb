"""Running: N envs between launch and close: who waits, who steps, whose episode ended, began or was lost."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ActionRows, rows_of
from nervex.envs.hosting.host import EnvFault, Events, HostSetup, reward_size
from nervex.envs.hosting.layout import layout_from
from nervex.envs.hosting.store import FINAL, SLOTS, BlockStore
from nervex.utils import tree
from nervex.worker.actor.env_manager.backend import PENDING, Backend, WorkerLost
from nervex.worker.actor.env_manager.fault_log import FaultLog
from nervex.worker.actor.env_manager.jobs import Job, Jobs
from nervex.worker.actor.env_manager.step_block import EnvState, EnvStateError, StepBlock


class Running:
    """
    Overview:
        The launched envs of a manager. A step of all envs that are ready, with nothing else under way, goes straight to
        the backend (``_aligned``: all observations lie in one slot, and are answered without a copy). Everything else
        is made of jobs: steps and beginnings, whose results gather until they are delivered.
    Arguments:
        - backend (:obj:`Backend`): where the envs live
        - cfg (:obj:`dict`): the manager's complete settings
        - together (:obj:`bool`): a step waits for all envs that were asked
        - episode_num (:obj:`float`): episodes of each env
        - setup (:obj:`Callable`): (env ids, whether to describe) -> HostSetup without ``episodes`` and ``renewed``
        - reset_kwargs (:obj:`dict`): env_id -> keyword arguments of its resets
        - faults (:obj:`FaultLog`): counts what goes wrong
    Interfaces:
        launch, observe, advance, reset, ask, present_obs, close
    """

    def __init__(
        self,
        backend: Backend,
        cfg: dict,
        together: bool,
        episode_num: float,
        setup: Callable[[range, bool], HostSetup],
        reset_kwargs: dict[int, dict],
        faults: FaultLog,
    ) -> None:
        self.backend, self.faults, self._cfg, self._together = backend, faults, cfg, together
        self._env_num = n = backend.groups[-1].stop
        self._episode_num, self._new_setup, self._reset_kwargs = episode_num, setup, reset_kwargs
        self._max_retry, self._renews = int(cfg['max_retry']), cfg['retry_type'] == 'renew'
        self.all_ids = np.arange(n, dtype=np.int64)
        self._everyone = list(range(n))
        self._group_of = {i: g for g, ids in enumerate(backend.groups) for i in ids}
        self.states, self.renewed, self._episodes = [EnvState.VOID] * n, [0] * n, [0] * n
        self.ready = np.zeros(n, bool)  # envs that wait for an action
        self._slot, self._slot_of = 0, np.zeros(n, np.int64)  # of the last step; of each env's observation
        self._aligned = False  # all envs are ready, in slot ``_slot``, and nothing is under way
        self._interrupted = False  # Ctrl-C came in the middle of a step
        self._observed: tuple[np.ndarray, Any] | None = None  # the answer of observe(), until it changes
        self._stepping: set[int] = set()  # envs that have an action and have not answered
        self._beginning: set[int] = set()  # envs whose episode is about to begin
        self._results: list[int] = []  # envs whose step was not delivered yet ...
        self._ended: set[int] = set()  # ... those of them whose episode has ended
        self._infos: dict[int, dict] = {}
        self._more_infos: list[Callable[[], dict]] = []
        self._abnormal: set[int] = set()  # envs whose episode was lost since the last delivery
        self._tries: dict[int, int] = {}  # env (or -1 - group) -> resets (or starts) that failed in a row
        self._answers: dict[int, Any] = {}  # group -> what it was asked for
        self._described: Any = None  # what the first group says of its envs
        self.jobs: Any = None
        self.store: Any = None  # the BlockStore, once the envs are described
        self._step_all: Any = None
        self._views: list[tuple[np.ndarray, Any]] = []
        self._plain_blocks: list[StepBlock] = []

    # ------------------------------------------------------------------ beginning
    def launch(self) -> None:
        """Make the envs and begin their first episodes."""
        backend, cfg = self.backend, self._cfg
        timeouts = dict(step=cfg['step_timeout'], begin=cfg['reset_timeout'])
        timeouts['start'] = cfg['connect_timeout'] + cfg['reset_timeout']  # the first one begins an episode, too
        self.jobs = Jobs(backend, timeouts, self._setup, self._job_ended, self._job_lost, self._not_made)
        for g in range(len(backend.groups)):
            self.jobs.start(g)
        self.jobs.settle()
        timeouts['start'] = cfg['connect_timeout']
        self.info, obs = self._described
        self.action_rows, self.reward_size = ActionRows(getattr(self.info, 'act_space', None)), reward_size(self.info)
        self._use(backend.share(layout_from(self.info, obs), self.reward_size, self.action_rows))
        for g in range(len(backend.groups)):
            backend.attach(g)
        self.states = [EnvState.INIT] * self._env_num
        self._step_all = None if self.asynchronous else backend.step_all
        self._begin(self._everyone, 0, fresh=True)
        self.jobs.settle()
        self._align()

    def _setup(self, g: int) -> HostSetup:
        """What a group is made from; envs that are made again do not replay the episodes of their predecessors."""
        ids = self.backend.groups[g]
        for i in ids if self.store is not None else ():
            self.renewed[i] += 1
        setup = self._new_setup(ids, g == 0 and self._described is None)
        setup.episodes, setup.renewed = self._episodes[ids.start : ids.stop], self.renewed[ids.start : ids.stop]
        return setup

    def _use(self, store: BlockStore) -> None:
        """Keep this store; blocks for steps in which nothing happens are made once."""
        n = self._env_num
        self.store, self._views = store, [(self.all_ids, obs) for obs in store.obs]
        sums = np.zeros(n), np.zeros(n, np.int64)
        columns = [(store.obs[s], store.reward[s], np.zeros(n, bool), np.zeros(n, bool)) for s in range(SLOTS)]
        self._plain_blocks = [StepBlock(self.all_ids, *parts, *sums, whole=True) for parts in columns]

    @property
    def asynchronous(self) -> bool:
        """Whether advance() may answer for other envs than those it was asked to step."""
        return not self._together or self.backend.asynchronous

    def close(self) -> list[EnvFault]:
        """End the envs; tells what their ``close`` raised."""
        faults = self.backend.close()
        self.jobs = self.store = self._step_all = self._observed = None  # the memory, and what holds this object
        self._views, self._plain_blocks = [], []
        return faults

    # ------------------------------------------------------------------ steps
    def observe(self) -> tuple[np.ndarray, Any]:
        """(ids in ascending order, block) of the envs that wait for an action. Do not write to it."""
        if self._observed is None:
            while self._beginning and not np.count_nonzero(self.ready):
                self._progress(None)
            ids = self.ready.nonzero()[0]
            ids = self.all_ids if len(ids) == self._env_num else ids
            self._observed = ids, self.store.take(self._slot if self._aligned else self._slot_of[ids], ids)
        return self._observed

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        """Step the envs ``ids`` with one row of ``actions`` each."""
        if not self._aligned or self._observed is None or np.asarray(ids).tobytes() != self._observed[0].tobytes():
            return self._advance_some(ids, actions)
        if len(actions) != len(ids) and type(actions) is not dict:
            self._refuse_number(len(ids), actions)
        slot = self._slot + 1
        if slot == SLOTS:
            slot = 0
        self._aligned, self._interrupted = False, True
        try:
            events = self._step_all(slot, actions, ids)
        except (ValueError, TypeError):  # actions that do not fit: nobody has stepped
            self._aligned, self._interrupted = True, False
            raise
        self._slot, self._interrupted = slot, False
        if events is None and not self.faults.suspects:
            self._aligned, self._observed = True, self._views[slot]
            return self._plain_blocks[slot]
        return self._finish(slot, events)

    def _finish(self, slot: int, events: Any) -> StepBlock:
        """The end of a step of all that are ready, in which something happened, or that is not over."""
        self._slot_of[:] = slot
        if events is PENDING:
            self._interrupted = True
            self.jobs.pending(slot)
        elif events is None or not events.faults:
            events = events or Events()
            stepped, infos = self._everyone if events.stepped is None else events.stepped, events.infos
            if infos:
                infos = _by_row(stepped, {}, [infos]) if callable(infos) else _by_row(stepped, infos, ())
            if events.waiting or events.begun:
                self._beginning.update(events.waiting)
                self._begun([i for i in events.begun if i in self._beginning], slot)
            return self._answer(stepped, events.finished, infos, here=True)
        else:
            self._take(self._everyone, slot, events)
        self.jobs.settle()
        self._interrupted = False
        return self._deliver(self._everyone)

    def _advance_some(self, ids: Iterable[int], actions: Any) -> StepBlock:
        """A step of some of the envs, or while something is under way."""
        if self._interrupted:
            raise EnvStateError('the last step was interrupted half-way; call reset() to begin anew')
        which = np.asarray(ids).tolist()
        if not (which and self._observed is not None and which == self._observed[0].tolist()):
            which = [check_id(i, self._env_num) for i in ids]
            busy = self.asynchronous and (self._results or self._stepping or self._beginning)
            if len(set(which)) < len(which) or not self.ready[which].all() or not (which or busy):
                self._refuse(which)
        actions = self.action_rows.block(actions)
        if type(actions) is not dict and len(actions) != len(which):
            self._refuse_number(len(which), actions)
        if not self.backend.partial_steps and len(which) < self.ready.sum():
            missing = sorted(set(np.flatnonzero(self.ready).tolist()).difference(which))
            raise EnvStateError(f'a vectorised env steps all ready envs together; no action for {missing}')
        if self._abnormal:  # what is done about their loss comes first; their actions were not for these episodes
            kept = [k for k, i in enumerate(which) if i not in self._abnormal]
            which, actions = [which[k] for k in kept], rows_of(actions, kept)
        self._part()
        self._interrupted, self._slot = self._together, (self._slot + 1) % SLOTS
        if which or self.backend.partial_steps:
            self._submit(which, actions)
        elif not self._abnormal:
            self._step_nobody()
        if self._together:
            self.jobs.settle()
        else:
            self._wait_for_some(bool(which))
        self._interrupted = False
        return self._deliver(None if self.asynchronous else which)

    def _submit(self, which: list[int], actions: Any) -> None:
        """Give the steps of these envs to their groups."""
        self.ready[which] = False
        self._observed = None
        self._stepping.update(which)
        if len(self.backend.groups) == 1 and which == sorted(which):
            self.jobs.give(0, Job('step', which, self._slot, actions))
            return
        rows: dict[int, list[int]] = {}
        for k in sorted(range(len(which)), key=which.__getitem__):
            rows.setdefault(self._group_of[which[k]], []).append(k)
        for g, mine in rows.items():
            self.jobs.give(g, Job('step', [which[k] for k in mine], self._slot, rows_of(actions, mine)))

    def _wait_for_some(self, gave: bool) -> None:
        if not (gave or self._results or self._stepping or self._abnormal):
            self._progress(None)  # none of the ready envs is wanted: one more may get ready
        wanted = min(max(1, int(self._cfg['wait_num'])), len(self._stepping) + len(self._results))
        end = time.monotonic() + self._cfg['step_wait_timeout']
        while not self._enough(wanted, end):
            self._progress(end if self._results or self._abnormal else None)

    def _enough(self, wanted: int, end: float) -> bool:
        """Enough results, or some and the time is over; and will there be an env to go on with?"""
        if not self._stepping:
            return True
        have = len(self._results) + len(self._abnormal)
        if have < wanted and not (have and time.monotonic() >= end):
            return False
        running = any(i not in self._ended or self._episodes[i] + 1 < self._episode_num for i in self._results)
        return bool(running or self._beginning or self.ready.any())

    def _progress(self, end: float | None) -> None:
        """Wait for what is under way; a vectorised env begins episodes in a step of nobody."""
        if self.jobs.idle and self._beginning:
            self._step_nobody()
        self.jobs.progress(end)

    def _step_nobody(self) -> None:
        self.jobs.give(0, Job('step', [], self._slot))

    def _deliver(self, order: list[int] | None) -> StepBlock:
        """The block of all results so far, in this order; and what follows from them."""
        results, self._results = self._results, []
        if order is not None and results != order:
            stepped = set(results)
            results = [i for i in order if i in stepped]
        ended, self._ended = self._ended, set()
        abnormal: tuple[int, ...] = ()
        if self._abnormal:
            abnormal, self._abnormal = tuple(sorted(self._abnormal)), set()
        infos = None
        if self._infos or self._more_infos:
            infos = _by_row(results, self._infos, self._more_infos)
            self._infos, self._more_infos = {}, []
        return self._answer(results, sorted(ended), infos, abnormal, here=order is self._everyone)

    def _answer(
        self, results: list[int], ended: list[int], infos: Any, abnormal: tuple[int, ...] = (), here: bool = False
    ) -> StepBlock:
        """The block of these results, and what follows from them; ``here``: all of them lie in the current slot."""
        store, slot, n = self.store, self._slot, len(results)
        whole = results is self._everyone or results == self._everyone
        ids = self.all_ids if whole else np.array(results, np.int64)
        done, truncated = np.zeros(n, bool), np.zeros(n, bool)
        rows = ended if whole else [results.index(i) for i in ended]
        for k, i in zip(rows, ended):
            done[k], truncated[k] = True, store.truncated[i]
        if whole and here:
            obs, reward = store.obs[slot], store.reward[slot]
            if ended:
                obs, reward = store.with_finals(slot, ended), reward.copy()  # the slot may be written again
            returns, lengths = store.episode_return.copy(), store.episode_length.copy()
        else:
            places = self._slot_of[ids]
            reward = store.reward[places, ids]
            for k in rows:
                places[k] = FINAL
            obs, returns, lengths = store.take(places, ids), store.episode_return[ids], store.episode_length[ids]
            self.ready[ids] = True
        block = StepBlock(ids, obs, reward, done, truncated, returns, lengths, infos or None, abnormal, whole)
        if self.faults.suspects:
            self.faults.good_steps(results, ended)
        all_ready = whole and here
        for i in ended:
            self._after_episode(i)
            all_ready = all_ready and bool(self.ready[i])
        while self._together and self._beginning and not np.count_nonzero(self.ready):  # 1 us faster than any()
            self._progress(None)
        self._align(here and not abnormal, all_ready)
        return block

    def _after_episode(self, i: int) -> None:
        """An env has ended an episode, and that was delivered."""
        self._episodes[i] += 1
        if self._episodes[i] >= self._episode_num:
            self.states[i], self.ready[i] = EnvState.DONE, False
            self._beginning.discard(i)
        elif not self._cfg['auto_reset']:
            self.states[i], self.ready[i] = EnvState.RESET, False
        elif i in self._beginning:
            self.ready[i] = False
        elif not self._together:
            self._begin([i], self._slot)

    def _part(self) -> None:
        """From now on each env's observation is where its own last step has put it."""
        if self._aligned:
            self._slot_of[:] = self._slot
        self._aligned, self._observed = False, None

    def _align(self, in_slot: bool = False, all_ready: bool = False) -> None:
        """See whether the next step may be one of all that are ready; who knows the answers passes them."""
        self._aligned, self._observed = False, None
        if self._step_all is None or self._abnormal:
            return
        if in_slot or (self._slot_of[self.ready] == self._slot).all():
            count = self._env_num if all_ready else np.count_nonzero(self.ready)
            if count == self._env_num:
                self._aligned, self._observed = True, self._views[self._slot]
            else:
                self._aligned = bool(count) and not self.backend.partial_steps

    # ------------------------------------------------------------------ what the groups' jobs bring
    def _job_ended(self, g: int, job: Job, answer: Any) -> None:
        if job.kind in ('step', 'begin') and isinstance(answer, EnvFault):  # the host itself has failed
            events = Events()
            events.faults = [answer._replace(env_id=i, phase=job.kind.replace('begin', 'reset')) for i in job.ids]
            answer = events
        if job.kind == 'start':
            self._tries.pop(-1 - g, None)
            if self.store is None:
                self._described = self._described or answer
            else:
                self.backend.attach(g)
        elif job.kind == 'step':
            self._take(job.ids, job.slot, answer)
        elif job.kind == 'begin':
            bad = {fault.env_id: fault for fault in answer.faults} if answer is not None else {}
            late = answer.waiting if answer is not None else ()
            self._begun([i for i in job.ids if i not in bad and i not in late], job.slot)
            if bad:
                self._try_again(g, list(bad.values()), job.slot)
        else:
            self._answers[g] = answer

    def _take(self, ids: list[int], slot: int, events: Events | None) -> None:
        """A step of these envs."""
        if events is not None:
            ids = ids if events.stepped is None else events.stepped
            self._ended.update(events.finished)
            if callable(events.infos):
                self._more_infos.append(events.infos)
            else:
                self._infos.update(events.infos)
            if events.waiting or events.begun:
                self._beginning.update(events.waiting)
                self._begun([i for i in events.begun if i in self._beginning], slot)
            for fault in events.faults:
                i = fault.env_id
                if fault.phase == 'reset':  # the automatic reset after a good episode: one try is used up
                    self._try_again(self._group_of[i], [fault], slot)
                    continue
                ids = [k for k in ids if k != i]
                self._stepping.discard(i)
                self._drop(fault)
                self._begin([i], slot, self._renews)
        self._results += ids
        if self._stepping:
            self._slot_of[ids] = slot
            self._stepping.difference_update(ids)

    def _begin(self, ids: Iterable[int], slot: int, renew: bool = False, fresh: bool = False) -> None:
        """Begin episodes; ``fresh`` counts episodes from 0 again, ``renew`` makes the envs anew."""
        for g, mine in self._by_group(ids).items():
            for i in mine:
                self.states[i], self.ready[i] = EnvState.RESET, False
                self._episodes[i] = 0 if fresh else self._episodes[i]
            self._beginning.update(mine)
            self.jobs.give(g, self._begin_job(mine, slot, renew, fresh))

    def _begin_job(self, ids: list[int], slot: int, renew: bool, fresh: bool = False) -> Job:
        for i in ids:
            self.renewed[i] += renew
        kwargs = {i: self._reset_kwargs.get(i, {}) for i in ids}
        return Job('begin', ids, slot, (slot, ids, renew, kwargs, fresh))

    def _begun(self, ids: list[int], slot: int) -> None:
        """These envs have the first observation of an episode."""
        for i in ids:
            self._tries.pop(i, None)
            self.states[i], self._slot_of[i], self.ready[i] = EnvState.RUN, slot, True
        self._beginning.difference_update(ids)
        self._observed = None

    # ------------------------------------------------------------------ faults
    def _drop(self, fault: EnvFault, strike: bool = True) -> None:
        """An unfinished episode is lost."""
        i = fault.env_id
        self._part()
        self.ready[i] = False
        self._abnormal.add(i)
        if strike:
            self.states[i] = EnvState.ERROR  # and stays so if this was one fault too many
            self.faults.strike(fault)

    def _try_again(self, g: int, faults: list[EnvFault], slot: int) -> None:
        """Resets that failed are tried again after a pause, ``max_retry`` times."""
        for fault in faults:
            self._count_try(fault.env_id, fault)
            self.states[fault.env_id], self.ready[fault.env_id] = EnvState.RESET, False
        ids = [fault.env_id for fault in faults]
        self._beginning.update(ids)
        when = time.monotonic() + self._cfg['retry_waiting_time']
        self.jobs.give_later(when, g, self._begin_job(ids, slot, self._renews))

    def _count_try(self, key: int, fault: EnvFault) -> None:
        self.faults.record(fault)
        self._tries[key] = self._tries.get(key, 0) + 1
        if self._tries[key] > self._max_retry:
            self.states[fault.env_id] = EnvState.ERROR
            raise self.faults.error(fault)

    def _not_made(self, g: int, fault: EnvFault) -> float:
        """The envs of a group could not be made: when to try again; at the launch never, if their code says no."""
        if self.store is None and (fault.phase, fault.kind) == ('build', 'error'):
            raise self.faults.error(fault)
        self._count_try(-1 - g, fault)
        return time.monotonic() + self._cfg['retry_waiting_time']

    def _job_lost(self, g: int, job: Job, lost: WorkerLost) -> None:
        """A group is gone: whatever its envs were doing is lost, and they begin anew."""
        self.jobs.forget_steps(g)
        again, retry, struck = [], [], False
        for i in self.backend.groups[g]:
            fault = EnvFault(i, 'reset' if job.kind == 'begin' else 'step', lost.kind, str(lost))
            if i in self._beginning:
                if job.kind == 'begin' and i in job.ids:
                    retry.append(fault)
                elif not self.backend.partial_steps:  # it was to begin in this step; else its turn comes
                    again.append(i)
            elif i == lost.ended:  # its step was good
                self._take([i], job.slot, None)
                self._ended.add(i)
                retry.append(fault._replace(phase='reset'))
            elif i in self._ended:
                again += [i] if self._together else []  # else delivering its end begins the next
            elif self.states[i] is EnvState.RUN:
                self._results = [r for r in self._results if r != i]
                self._stepping.discard(i)
                again.append(i)
                strike = i in job.ids and job.kind != 'begin' and not (struck and lost.one_fault)
                self._drop(fault, strike)
                struck = struck or strike
        if lost.one_fault and not struck:
            self.faults.record(EnvFault(self.backend.groups[g].start, 'step', lost.kind, str(lost)))
        if job.kind not in ('step', 'begin'):
            self._answers[g] = lost
        self._begin(again, job.slot)
        if retry:
            self._try_again(g, retry, job.slot)

    # ------------------------------------------------------------------ between steps
    def reset(self, ids: list[int]) -> None:
        """Let everything that is under way come to its end, drop it, and begin these envs anew together."""
        if not self.backend.partial_steps and (len(ids) < self._env_num or self._reset_kwargs):
            raise EnvStateError('a vectorised env resets all envs together, without parameters')
        if self._interrupted:
            self._slot_of[:] = self._slot
            self.jobs.resume(self._slot)
        self.jobs.settle()
        if self._interrupted:
            self.ready[self._results] = True
            self._results, self._interrupted = [], False
        self._results = [i for i in self._results if i not in ids]
        self._ended.intersection_update(self._results)
        for kept in (self._stepping, self._beginning):
            kept.difference_update(ids)
        self._part()
        self._slot = (self._slot + 1) % SLOTS
        self._begin(ids, self._slot, fresh=True)
        self.jobs.settle()
        self._abnormal.difference_update(ids)
        self._align()

    def present_obs(self, ids: Sequence[int]) -> Any:
        """The observations of these envs, stacked; waits while their episodes begin."""
        while not self.ready[ids].all():
            self._progress(None)
        return self.store.take(self._slot if self._aligned else self._slot_of[ids], np.array(ids))

    def ask(self, name: str, ids: list[int], args: Callable[[list[int]], tuple], needed: bool = True) -> list[Any]:
        """
        Overview:
            Have the hosts of these envs run a job when nothing else is under way; one answer an env.
        Arguments:
            - args (:obj:`Callable`): env ids of a group -> arguments
            - needed (:obj:`bool`): False: a group that is lost over it is no error
        """
        self.jobs.settle()
        groups, slot = self._by_group(ids), (self._slot + 1) % SLOTS
        self._answers = {}
        for g, mine in groups.items():
            self.jobs.give(g, Job(name, list(self.backend.groups[g]), slot, args(mine)))
        self.jobs.settle()
        found: dict[int, Any] = {}
        for g, mine in groups.items():
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

    def seed(self, seeds: dict[int, int], dynamic_seed: bool | None) -> None:
        """Seed envs; who is lost over this gets the seed when it is replaced."""
        for i in seeds:
            self.renewed[i] = 0
        self.ask('seed', sorted(seeds), lambda ids: (ids, [seeds[i] for i in ids], dynamic_seed), needed=False)

    @property
    def at_rest(self) -> bool:
        """Whether all envs wait for an action in the middle of their episodes, and all is told."""
        running = all(state is EnvState.RUN for state in self.states)
        return bool(running and self.ready.all() and not self._abnormal and not self.asynchronous)

    def put_back(self, leaves: list[np.ndarray]) -> None:
        """Observations (as bytes) of all envs, which wait for an action."""
        for leaf, saved in zip(tree.leaves(self.store.obs[self._slot]), leaves):
            leaf[...] = saved.view(leaf.dtype).reshape(leaf.shape)
        self._slot_of[:] = self._slot
        self._align()

    # ------------------------------------------------------------------ the ids
    def _by_group(self, ids: Iterable[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for i in sorted(ids):
            found.setdefault(self._group_of[i], []).append(i)
        return found

    @staticmethod
    def _refuse_number(ids: int, actions: Any) -> None:
        raise ValueError(f'advance(): {ids} ids, but {len(actions)} actions; pass one row for each id')

    def _refuse(self, ids: list[int]) -> None:
        """Raise for ids that may not be stepped now, with the reason for each."""
        if len(set(ids)) != len(ids):
            raise EnvStateError(f'an env was given two actions in one step: {ids}')
        ready = np.flatnonzero(self.ready).tolist()
        if not ids:
            raise EnvStateError(f'no env was given an action; ready are {ready}')
        bad = [f'env {i} ({self.states[i].name})' for i in ids if i not in ready]
        raise EnvStateError(f'not ready for an action: {", ".join(bad)}; ready are {ready}')


def _by_row(ids: list[int], infos: dict[int, dict], more: Sequence[Callable[[], dict]]) -> Any:
    """The infos by row instead of env id; if some are yet to be made, a function that does."""
    if not more:
        return {k: infos[i] for k, i in enumerate(ids) if i in infos}

    def made() -> dict[int, dict]:
        for part in more:
            infos.update(part())
        return {k: infos[i] for k, i in enumerate(ids) if i in infos}

    return made


def check_id(env_id: Any, env_num: int) -> int:
    """The same id; raises for what is none."""
    if isinstance(env_id, bool) or not isinstance(env_id, (int, np.integer)) or not 0 <= env_id < env_num:
        raise EnvStateError(f'unknown env id {env_id!r}; the ids are 0 to {env_num - 1}')
    return int(env_id)
