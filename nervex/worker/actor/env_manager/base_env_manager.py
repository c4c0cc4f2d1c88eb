"""BaseEnvManager: all envs in this process, one after the other. For tests, and the fastest choice for cheap envs."""
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from nervex.envs.hosting.calls import ask_env
from nervex.envs.hosting.host import EnvFault, EnvHost, Events, layout_from, reward_size
from nervex.envs.hosting.layout import copy_rows, put_row, take_rows, write_row
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
        rows = self._action_rows
        events = host.step(slot, rows.rows(rows.block(actions), host.plain_actions))
        self._slot = slot
        if events is None and not self.faults.suspects:
            self._ready_obs_block = self._store.obs[slot]
            return self._plain_blocks[slot]
        return self._finish(slot, range(self._env_num), events)

    def _advance_some(self, ids: np.ndarray, actions: Any) -> StepBlock:
        """A step of some of the envs: the others' observations move along to the new slot."""
        self._check_open('advance')
        which = [self._check_id(i) for i in ids]
        if len(set(which)) != len(which) or not set(which) <= set(self.ready_env):
            self._refuse(which)
        rows = self._action_rows
        action_rows = rows.rows(rows.block(actions), self._host.plain_actions)
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

    def _finish(self, slot: int, which: Iterable[int], events: Events | None) -> StepBlock:
        """The slow path of a step: episodes that ended, infos, faults, or only some of the envs."""
        events = events or Events()
        dropped, failed_reset = set(), {}
        for fault in events.faults:
            if fault.phase == 'reset':
                self.faults.record(fault)
                failed_reset[fault.env_id] = fault
            else:
                dropped.add(fault.env_id)
        kept = [i for i in which if i not in dropped]
        block = self._block(slot, kept, events, tuple(sorted(dropped)))
        for i in events.finished:
            self._after_episode(i)
        self.faults.good_steps(kept, events.finished)
        for fault in events.faults:
            if fault.phase != 'reset':
                self._states[fault.env_id] = EnvState.ERROR  # and stays so if this was one fault too many
                self.faults.strike(fault)
                self._restart(fault.env_id, slot, renew=self._cfg['retry_type'] == 'renew')
        for i, fault in failed_reset.items():
            self._restart(i, slot, fault)
        self._refresh()
        return block

    def _block(self, slot: int, kept: list[int], events: Events, abnormal: tuple[int, ...]) -> StepBlock:
        """The block of the rows in ``kept``; finished episodes show their final observation."""
        store, ids = self._store, self.all_ids
        obs, reward = store.obs[slot], store.reward[slot]
        whole = len(kept) == self._env_num and kept == list(range(self._env_num))
        if not whole:
            ids = np.array(kept, np.int64)
            reward = reward[ids]
        if events.finished or not whole:
            obs = take_rows(obs, ids)
        place = {i: k for k, i in enumerate(kept)}
        done, truncated = np.zeros(len(kept), bool), np.zeros(len(kept), bool)
        for i in events.finished:
            k = place[i]
            done[k], truncated[k] = True, store.truncated[i]
            put_row(obs, k, store.final_rows[i])
        infos = {place[i]: info for i, info in events.infos.items() if i in place}
        return StepBlock(ids, obs, reward, done, truncated, store.episode_return[ids], store.episode_length[ids], infos,
                         abnormal)

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
        self._reward_size = store.reward_size
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
            self._states[i] = EnvState.DONE
        elif not self._cfg['auto_reset']:
            self._states[i] = EnvState.RESET

    def _refresh(self) -> None:
        """Work out again which envs are ready, and their block."""
        ready = [i for i, state in enumerate(self._states) if state is EnvState.RUN]
        block = self._store.obs[self._slot]
        if len(ready) == self._env_num:
            self._ready, self._ready_obs_block = self.all_ids, block
        else:
            self._ready = np.array(ready, np.int64)
            self._ready_obs_block = take_rows(block, self._ready)

    def _ready_ids(self) -> np.ndarray:
        return np.zeros(0, np.int64) if self._closed else self._ready

    def _restarted_obs(self, ids: Iterable[int]) -> Any:
        return take_rows(self._store.obs[self._slot], list(ids))
