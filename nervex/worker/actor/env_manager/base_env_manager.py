"""BaseEnvManager: all envs in this process, one after the other. For tests, and the fastest choice for cheap envs."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.host import EnvFault, EnvHost, Events, reward_size
from nervex.envs.hosting.layout import copy_block, copy_rows, layout_from, put_row, take_rows
from nervex.envs.hosting.store import SLOTS, BlockStore
from nervex.utils.errors import ExtraMissingError
from nervex.worker.actor.env_manager.manager_base import EnvManager
from nervex.worker.actor.env_manager.saving import SavesEnvs
from nervex.worker.actor.env_manager.step_block import EnvState, StepBlock


class BaseEnvManager(SavesEnvs, EnvManager):
    """
    Overview:
        Steps all envs in this process. It has no overhead to speak of, so it is the right kind while a step of an env
        takes less than about 50 us; it cannot interrupt an env that hangs.

        All observations of one step lie in one slot of the store. A step writes the next slot; where only some envs
        step, the others' rows move along.
    """

    _host: EnvHost | None = None

    # ------------------------------------------------------------------ the block form
    def observe(self) -> tuple[np.ndarray, Any]:
        return self._ready, self._ready_block

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        if not self._all_run or not self._are_all(ids):
            return self._advance_some(ids, actions)
        if len(actions) != self._env_num and not isinstance(actions, dict):
            self._refuse_number(actions, self._env_num)
        slot = self._slot + 1
        if slot == SLOTS:
            slot = 0
        events = self._step(slot, actions, None)
        self._slot = slot
        if events is None and not self.faults.suspects:
            self._ready_block = self._store.obs[slot]
            return self._plain_blocks[slot]
        return self._finish(slot, self._everyone, events)

    def _advance_some(self, ids: np.ndarray, actions: Any) -> StepBlock:
        """A step of some of the envs."""
        self._check_open('advance')
        which = [self._check_id(i) for i in ids]
        if not which or len(set(which)) != len(which) or not set(which) <= set(self.ready_env):
            self._refuse(which)
        actions = self._action_rows.block(actions)
        if not isinstance(actions, dict) and len(actions) != len(which):
            self._refuse_number(actions, len(which))
        slot = self._next_slot(which)
        events = self._step(slot, actions, which)
        self._slot = slot
        return self._finish(slot, which, events)

    @staticmethod
    def _refuse_number(actions: Any, ids: int) -> None:
        raise ValueError(f'advance(): {ids} ids, but {len(actions)} actions; pass one row for each id')

    def _finish(self, slot: int, which: Sequence[int], events: Events | None) -> StepBlock:
        """The slow path of a step: episodes that ended, infos, faults, or only some of the envs."""
        events = events or Events()
        for i in events.finished:
            self._after_episode(i)
        kept, dropped = which, ()
        if events.faults:
            dropped = self._recover_all(slot, events)
            kept = [i for i in which if i not in dropped]
        if kept is self._everyone:
            block = self._whole_block(slot, events)
        else:
            block = self._part_block(slot, kept, events, tuple(sorted(dropped)))
        if self.faults.suspects:
            self.faults.good_steps(kept, events.finished)
        if self._all_run and len(self._ready) == self._env_num:
            self._ready_block = self._store.obs[slot]
        else:
            self._refresh()
        return block

    def _whole_block(self, slot: int, events: Events) -> StepBlock:
        """The block of all envs; finished episodes show their final observation."""
        store, n = self._store, self._env_num
        obs, done, truncated = store.obs[slot], np.zeros(n, bool), np.zeros(n, bool)
        if events.finished:
            obs = copy_block(obs)
            for i in events.finished:
                done[i], truncated[i] = True, store.truncated[i]
                put_row(obs, i, store.final_rows[i])
        return StepBlock(
            self.all_ids,
            obs,
            store.reward[slot],
            done,
            truncated,
            store.episode_return.copy(),
            store.episode_length.copy(),
            events.infos,
            whole=True,
        )

    def _part_block(self, slot: int, kept: Sequence[int], events: Events, abnormal: tuple[int, ...]) -> StepBlock:
        """The block of some envs."""
        ids = np.array(kept, np.int64)
        whole = self._whole_block(slot, events)
        infos = {k: events.infos[i] for k, i in enumerate(kept) if i in events.infos}
        return StepBlock(
            ids,
            take_rows(whole.obs, ids),
            whole.reward[ids],
            whole.done[ids],
            whole.truncated[ids],
            whole.episode_return[ids],
            whole.episode_length[ids],
            infos,
            abnormal,
        )

    # ------------------------------------------------------------------ life
    def _open(self) -> None:
        self._lost: set[int] = set()
        info, obs = self._make_envs()
        self._set_info(info)
        self._make_store(layout_from(info, obs), reward_size(info))
        self._states = [EnvState.INIT] * self._env_num
        self._begin_all(list(range(self._env_num)), 0, fresh=True)
        self._refresh()

    def _use(self, store: BlockStore) -> None:
        """Keep this store; blocks for steps in which nothing happens are made once."""
        self._store, self._slot, n = store, 0, self._env_num
        self._reward_size, self._everyone = store.reward_size, range(n)
        no = [np.zeros(n, bool) for _ in range(2 * SLOTS)]
        zero, none = np.zeros(n), np.zeros(n, np.int64)
        self._plain_blocks = [
            StepBlock(self.all_ids, store.obs[s], store.reward[s], no[2 * s], no[2 * s + 1], zero, none, whole=True)
            for s in range(SLOTS)
        ]

    def _reset(self, ids: list[int]) -> None:
        slot = self._next_slot(ids)
        self._begin_all(ids, slot, fresh=True)
        self._slot = slot
        self._refresh()

    def _next_slot(self, which: Iterable[int]) -> int:
        slot = (self._slot + 1) % SLOTS
        others = sorted(set(range(self._env_num)) - set(which))
        if others:
            copy_rows(self._store.obs[slot], self._store.obs[self._slot], others)
        return slot

    def _begin_all(self, ids: list[int], slot: int, fresh: bool) -> None:
        """Begin an episode of each of these envs, with retries; ``fresh`` counts their episodes from 0 again."""
        for i in ids:
            self._states[i] = EnvState.RESET
            if fresh:
                self._episodes[i] = 0
        failed = self._begin(ids, slot, False, fresh)
        for i in ids:
            if i in failed:
                self.faults.record(failed[i])
                self._restart(i, slot, failed[i])
            else:
                self._states[i] = EnvState.RUN

    # ------------------------------------------------------------------ faults and states
    def _recover_all(self, slot: int, events: Events) -> set[int]:
        """Restart the envs that failed; answers those whose unfinished episode is lost."""
        dropped = set()
        self._lost.clear()
        for fault in events.faults:
            i = fault.env_id
            if fault.phase == 'reset':  # the automatic reset after a good episode: one try is used up
                self.faults.record(fault)
                self._restart(i, slot, fault)
                continue
            dropped.add(i)
            self._states[i] = EnvState.ERROR  # and stays so if this was one fault too many
            self.faults.strike(fault)
            self._restart(i, slot, renew=self._cfg['retry_type'] == 'renew')
        return dropped | (self._lost - set(events.finished))

    def _restart(self, i: int, slot: int, failed: EnvFault | None = None, renew: bool = False) -> None:
        """Begin an episode of env i; ``failed`` is a try that has just gone wrong, ``renew``: replace the env."""
        self._states[i] = EnvState.RESET
        tries = 0 if failed is None else 1
        while tries <= self._max_retry:
            if tries:
                time.sleep(self._cfg['retry_waiting_time'])
                renew = renew or self._cfg['retry_type'] == 'renew'
            failed = self._begin([i], slot, renew, False).get(i)
            if failed is None:
                self._states[i] = EnvState.RUN
                return
            self.faults.record(failed)
            tries += 1
        self._states[i] = EnvState.ERROR
        raise self.faults.error(failed)

    def _after_episode(self, i: int) -> None:
        self._episodes[i] += 1
        if self._episodes[i] >= self._episode_num:
            self._states[i], self._all_run = EnvState.DONE, False
        elif not self._cfg['auto_reset']:
            self._states[i], self._all_run = EnvState.RESET, False

    def _refresh(self) -> None:
        """Work out again which envs are ready, and their block."""
        ready = [i for i, state in enumerate(self._states) if state is EnvState.RUN]
        block = self._store.obs[self._slot]
        self._all_run = len(ready) == self._env_num
        if self._all_run:
            self._ready, self._ready_block = self.all_ids, block
        else:
            self._ready = np.array(ready, np.int64)
            self._ready_block = take_rows(block, self._ready)

    def _ready_ids(self) -> Any:
        return np.zeros(0, np.int64) if self._closed else self._ready

    def _restarted_obs(self, ids: Iterable[int]) -> Any:
        return take_rows(self._store.obs[self._slot], list(ids))

    # ------------------------------------------------------------------ where the envs live; replaced by subclasses
    def _make_envs(self) -> tuple[Any, Any]:
        """Make all envs; answers the description and the first observation of env 0."""
        self._host = self._new_host(range(self._env_num))
        for i in range(self._env_num):
            self._retry(i, 'build', lambda i=i: self._host.build(i))
        return self._retry(0, 'reset', self._host.first_observation)

    def _new_host(self, ids: range) -> EnvHost:
        host = EnvHost(
            self._env_fn, [self._env_cfg[i] for i in ids], ids.start, bool(self._cfg['auto_reset']), self._episode_num
        )
        for k, i in enumerate(ids):
            host.reset_kwargs[k] = self._reset_param.get(i, {})
            if self._seeds[i] is not None:
                host.seed(k, self._seeds[i], self._dynamic_seed)
        return host

    def _retry(self, i: int, phase: str, action: Any) -> Any:
        """The answer of ``action``, tried ``max_retry`` times more when it raises."""
        for tries in range(self._max_retry + 1):
            if tries:
                time.sleep(self._cfg['retry_waiting_time'])
            try:
                return action()
            except ExtraMissingError:
                raise  # a package that is not installed will not be there at the next try either
            except Exception as error:
                fault, cause = self._host.fault(i, phase, error), error
                self.faults.record(fault)
        raise self.faults.error(fault) from cause

    def _make_store(self, layout: Any, size: int) -> None:
        self._use(BlockStore(layout, self._env_num, size))
        self._host.attach(self._store)

    def _step(self, slot: int, actions: Any, which: Sequence[int] | None) -> Events | None:
        """Step the envs ``which`` (None: all) into this slot."""
        return self._host.step(slot, self._action_rows.split(actions, self._host.action_form), which)

    def _begin(self, ids: Sequence[int], slot: int, renew: bool, fresh: bool) -> dict[int, EnvFault]:
        """Begin an episode of each of these envs; answers what went wrong, by env."""
        failed = {}
        for i in ids:
            if fresh:
                self._host.episodes[i] = 0
            self._host.reset_kwargs[i] = self._reset_param.get(i, {})
            try:
                if renew:
                    self._host.renew(i)
                self._host.reset(i, slot)
            except Exception as error:
                failed[i] = self._host.fault(i, 'reset', error)
        return failed

    def _send_seeds(self, ids: list[int]) -> None:
        for i in ids:
            self._host.seed(i, self._seeds[i], self._dynamic_seed)

    def _call(self, name: str, calls: list[tuple[tuple, dict]] | None, ids: Iterable[int]) -> list[Any]:
        return [self._host.ask(i, name, None if calls is None else calls[k]) for k, i in enumerate(ids)]

    def _shut(self) -> None:
        if self._host is not None:
            for fault in self._host.close():
                self.faults.record(fault)
