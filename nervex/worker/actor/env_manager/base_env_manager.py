"""BaseEnvManager: all envs in this process, one after the other. For tests, and the fastest choice for cheap envs."""
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.calls import ask_env
from nervex.envs.hosting.host import EnvFault, EnvHost, Events, layout_from, reward_size
from nervex.envs.hosting.layout import copy_block, copy_rows, put_row, take_rows, write_row
from nervex.envs.hosting.store import SLOTS, BlockStore
from nervex.worker.actor.env_manager.manager_base import EnvManager
from nervex.worker.actor.env_manager.step_block import EnvState, StepBlock


class BaseEnvManager(EnvManager):
    """
    Overview:
        Steps all envs in this process. Has no overhead to speak of, so it is the right kind while one step of an env
        takes less than about 50 us; it cannot interrupt an env that hangs.
    """

    # ------------------------------------------------------------------ the block form
    def observe(self) -> tuple[np.ndarray, Any]:
        return self._ready, self._ready_obs_block

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        if ids is not self.all_ids or self._ready is not self.all_ids:
            return self._advance_some(ids, actions)
        host = self._host
        slot = self._slot + 1
        if slot == SLOTS:
            slot = 0
        events = host.step(slot, self._action_rows.split(actions, host.plain_actions))
        self._slot = slot
        if events is None and not self.faults.suspects:
            self._ready_obs_block = self._store.obs[slot]
            return self._plain_blocks[slot]
        return self._finish(slot, self._everyone, events)

    def _advance_some(self, ids: np.ndarray, actions: Any) -> StepBlock:
        """A step of some of the envs: the others' observations move along to the new slot."""
        self._check_open('advance')
        which = [self._check_id(i) for i in ids]
        if len(set(which)) != len(which) or not set(which) <= set(self.ready_env):
            self._refuse(which)
        action_rows = self._action_rows.split(actions, self._host.plain_actions)
        if len(action_rows) != len(which):
            raise ValueError(f'advance(): {len(which)} ids, but {len(action_rows)} actions')
        slot = self._next_slot(which)
        events = self._host.step(slot, action_rows, which)
        self._slot = slot
        return self._finish(slot, which, events)

    def _next_slot(self, which: Iterable[int]) -> int:
        slot = (self._slot + 1) % SLOTS
        others = sorted(set(range(self._env_num)) - set(which))
        if others:
            copy_rows(self._store.obs[slot], self._store.obs[self._slot], others)
        return slot

    def _finish(self, slot: int, which: Sequence[int], events: Events | None) -> StepBlock:
        """The slow path of a step: episodes that ended, infos, faults, or only some of the envs."""
        events = events or Events()
        dropped = {fault.env_id for fault in events.faults if fault.phase != 'reset'} if events.faults else ()
        kept = [i for i in which if i not in dropped] if dropped else which
        if kept is self._everyone:
            block = self._whole_block(slot, events)
        else:
            block = self._part_block(slot, kept, events, tuple(sorted(dropped)))
        if self.faults.suspects:
            self.faults.good_steps(kept, events.finished)
        for i in events.finished:
            self._after_episode(i)
        for fault in events.faults:
            self._recover(fault, slot)
        if self._ready is self.all_ids and self._all_run:
            self._ready_obs_block = self._store.obs[slot]
        else:
            self._refresh()
        return block

    def _recover(self, fault: EnvFault, slot: int) -> None:
        """Begin a new episode of an env after a fault."""
        i = fault.env_id
        if fault.phase == 'reset':  # the automatic reset after a good episode: one try is used up
            self.faults.record(fault)
            self._restart(i, slot, fault)
            return
        self._states[i] = EnvState.ERROR  # and stays so if this was one fault too many
        self.faults.strike(fault)
        self._restart(i, slot, renew=self._cfg['retry_type'] == 'renew')

    def _whole_block(self, slot: int, events: Events) -> StepBlock:
        """The block of all envs; finished episodes show their final observation."""
        store, n = self._store, self._env_num
        obs, done, truncated = store.obs[slot], np.zeros(n, bool), np.zeros(n, bool)
        if events.finished:
            obs = copy_block(obs)
            for i in events.finished:
                done[i], truncated[i] = True, store.truncated[i]
                put_row(obs, i, store.final_rows[i])
        return StepBlock(self.all_ids, obs, store.reward[slot], done, truncated, store.episode_return.copy(),
                         store.episode_length.copy(), events.infos)

    def _part_block(self, slot: int, kept: Sequence[int], events: Events, abnormal: tuple[int, ...]) -> StepBlock:
        """The block of some envs."""
        ids = np.array(kept, np.int64)
        whole = self._whole_block(slot, events)
        infos = {k: whole.infos[i] for k, i in enumerate(kept) if i in whole.infos}
        return StepBlock(ids, take_rows(whole.obs, ids), whole.reward[ids], whole.done[ids], whole.truncated[ids],
                         whole.episode_return[ids], whole.episode_length[ids], infos, abnormal)

    # ------------------------------------------------------------------ life
    def _open(self) -> None:
        self._host = host = EnvHost(self._env_fn, self._env_cfg, 0, bool(self._cfg['auto_reset']), self._episode_num)
        self._send_seeds([i for i, s in enumerate(self._seeds) if s is not None])
        for i in range(self._env_num):
            host.reset_kwargs[i] = self._reset_param.get(i, {})
            self._build(i)
        info, obs = self._first_observation()
        self._set_info(info)
        self._attach(BlockStore(layout_from(info, obs), self._env_num, reward_size(info)))
        host.attach(self._store)
        write_row(self._store.rows[0][0], obs)
        self._states[0] = EnvState.RUN
        for i in range(1, self._env_num):
            self._restart(i, 0)
        self._refresh()

    def _build(self, i: int) -> None:
        try:
            self._host.build(i)
        except Exception as error:
            raise self.faults.error(self._host.fault(i, 'build', error)) from error
        self._states[i] = EnvState.INIT

    def _first_observation(self) -> tuple[Any, Any]:
        """Of env 0, with retries: the shapes of all others follow from it."""
        for tries in range(self._max_retry + 1):
            if tries:
                time.sleep(self._cfg['retry_waiting_time'])
            try:
                return self._host.first_observation()
            except Exception as error:
                failed, cause = self._host.fault(0, 'reset', error), error
                self.faults.record(failed)
        raise self.faults.error(failed) from cause

    def _attach(self, store: BlockStore) -> None:
        """Use this store; blocks for steps in which nothing happens are made once."""
        self._store, self._slot, n = store, 0, self._env_num
        self._reward_size, self._everyone = store.reward_size, range(n)
        no = [np.zeros(n, bool) for _ in range(2 * SLOTS)]
        zero, none = np.zeros(n), np.zeros(n, np.int64)
        self._plain_blocks = [
            StepBlock(self.all_ids, store.obs[s], store.reward[s], no[2 * s], no[2 * s + 1], zero, none)
            for s in range(SLOTS)
        ]

    def _reset(self, ids: list[int]) -> None:
        slot = self._next_slot(ids)
        for i in ids:
            self._host.reset_kwargs[i] = self._reset_param.get(i, {})
            self._host.episodes[i] = 0
            self._restart(i, slot)
        self._slot = slot
        self._refresh()

    def _send_seeds(self, ids: list[int]) -> None:
        for i in ids:
            self._host.seed(i, self._seeds[i], self._dynamic_seed)

    def _call(self, name: str, calls: list[tuple[tuple, dict]] | None, ids: Iterable[int]) -> list[Any]:
        return [ask_env(self._host.envs[i], name, None if calls is None else calls[k]) for k, i in enumerate(ids)]

    def _shut(self) -> None:
        for fault in self._host.close():
            self.faults.record(fault)

    # ------------------------------------------------------------------ faults and states
    def _restart(self, i: int, slot: int, failed: EnvFault | None = None, renew: bool = False) -> None:
        """Begin an episode of env i; ``failed`` is a try that has just gone wrong, ``renew`` says to replace the env."""
        self._states[i] = EnvState.RESET
        tries = 0 if failed is None else 1
        while tries <= self._max_retry:
            if tries:
                time.sleep(self._cfg['retry_waiting_time'])
            try:
                if renew or (tries and self._cfg['retry_type'] == 'renew'):
                    self._host.renew(i)
                    renew = False
                self._host.reset(i, slot)
            except Exception as error:
                failed = self._host.fault(i, 'reset', error)
                self.faults.record(failed)
                tries += 1
            else:
                self._states[i] = EnvState.RUN
                return
        self._states[i] = EnvState.ERROR
        raise self.faults.error(failed)

    def _after_episode(self, i: int) -> None:
        if self._host.episodes[i] >= self._episode_num:
            self._states[i], self._all_run = EnvState.DONE, False
        elif not self._host.auto_reset:
            self._states[i], self._all_run = EnvState.RESET, False

    def _refresh(self) -> None:
        """Work out again which envs are ready, and their block."""
        ready = [i for i, state in enumerate(self._states) if state is EnvState.RUN]
        block = self._store.obs[self._slot]
        self._all_run = len(ready) == self._env_num
        if self._all_run:
            self._ready, self._ready_obs_block = self.all_ids, block
        else:
            self._ready = np.array(ready, np.int64)
            self._ready_obs_block = take_rows(block, self._ready)

    def _ready_ids(self) -> np.ndarray:
        return np.zeros(0, np.int64) if self._closed else self._ready

    def _restarted_obs(self, ids: Iterable[int]) -> Any:
        return take_rows(self._store.obs[self._slot], list(ids))
