"""VectorEnvManager: envs that come vectorised (Gymnasium's vector envs, ALE's, EnvPool)."""

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from nervex.envs import BaseEnvInfo
from nervex.envs.hosting.host import EnvFault, describe_error
from nervex.envs.hosting.layout import InvalidStepError, copy_block, put_row, take_rows, tree_leaves
from nervex.envs.spaces import reward_info
from nervex.utils.errors import ConfigError
from nervex.worker.actor.env_manager.manager_base import EnvManager
from nervex.worker.actor.env_manager.step_block import EnvState, EnvStateError, StepBlock


class VectorEnvManager(EnvManager):
    """
    Overview:
        Drives one vectorised env. The fastest kind where such an env exists (Atari: ALE's own). All ready envs step
        together; with engines that reset in the step after an end, that env is not ready for one step.

        ``env_fn`` is a class with ``create_vector_env(cfgs)`` (GymEnv has it), or a function that answers an engine as
        in ``nervex.envs.vector_engine``. The configs of all envs are equal, episodes always follow one another at once.
    """

    kind = 'vector'
    partial_steps = False
    _engine: Any = None

    # ------------------------------------------------------------------ the block form
    def observe(self) -> tuple[np.ndarray, Any]:
        return self._ready, self._ready_block

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        if ids is not self._ready:
            self._check_open('advance')
            if len(ids) != len(self._ready) or (np.asarray(ids) != self._ready).any():
                order = self._order(ids)
                actions = self._action_rows.block(actions)[order]
        actions = self._action_rows.block(actions)
        if len(actions) != len(self._ready):
            raise ValueError(f'advance(): {len(self._ready)} ids, but {len(actions)} actions')
        if self._some_idle:  # the others get an action that means nothing
            full = np.zeros((len(self._present), *actions.shape[1:]), actions.dtype)
            full[self._ready_rows] = actions
            actions = full
        try:
            answer = self._engine.exchange(self._present, actions)
            self._check_finite(answer)
        except Exception as error:
            return self._start_again(error)
        block = self._take(answer)
        while not len(self._ready) and not self.done and not len(block):  # all of them were only beginning
            block = self._take(self._idle_exchange())
        while not len(self._ready) and not self.done:
            self._take(self._idle_exchange())
        return block

    def _order(self, ids: Any) -> np.ndarray:
        """Rows of the actions in the order of the ready envs; a vectorised env takes all of them or none."""
        place = {self._check_id(i): k for k, i in enumerate(ids)}
        if set(place) - set(self._ready.tolist()) or len(place) != len(ids):
            self._refuse(ids)
        if len(place) < len(self._ready):
            missing = sorted(set(self._ready.tolist()) - set(place))
            raise EnvStateError(f'a vectorised env steps all ready envs together; no action for {missing}')
        return np.array([place[i] for i in self._ready.tolist()])

    def _idle_exchange(self) -> Any:
        zeros = np.zeros(
            (len(self._present), *(self._action_rows.shape or ())),
            np.float32 if self._action_rows.kind == 'continuous' else np.int64,
        )
        return self._engine.exchange(self._present, zeros)

    def _take(self, answer: Any) -> StepBlock:
        """Sort the rows of an answer: steps of running episodes, first observations, envs that are done."""
        ids, ended = answer.env_id, answer.terminated | answer.truncated
        self._present = ids
        whole = len(ids) == self._engine.batch_size == self._env_num and not self._some_idle
        if whole:
            self._returns += answer.reward
            self._lengths += 1
            if not ended.any():
                self._ready, self._ready_block = ids, answer.obs
                infos = _Infos(answer.infos, None) if answer.infos else None
                return StepBlock(
                    self.all_ids,
                    answer.obs,
                    answer.reward,
                    self._no,
                    self._no,
                    self._returns,
                    self._lengths,
                    infos,
                    whole=True,
                )
            live = np.ones(len(ids), bool)
        else:
            live = ~self._beginning[ids] & ~self._over[ids]
            self._returns[ids[live]] += answer.reward[live]
            self._lengths[ids[live]] += 1
        ended &= live
        block = self._block(answer, live, ended, whole)
        self._beginning[ids] = ended & (not self._engine.same_step)
        over = ids[ended]
        self._returns[over], self._lengths[over] = 0.0, 0
        for i in over.tolist():
            self._episodes[i] += 1
            if self._episodes[i] >= self._episode_num:
                self._over[i], self._states[i] = True, EnvState.DONE
        self._some_idle = bool(self._beginning.any() or self._over.any())
        self._set_ready(answer.obs)
        if self.faults.suspects:
            self.faults.good_steps(ids[live].tolist(), over.tolist())
        return block

    def _block(self, answer: Any, live: np.ndarray, ended: np.ndarray, whole: bool) -> StepBlock:
        obs, ids = answer.obs, answer.env_id
        if answer.final_obs is not None and ended.any():
            obs = copy_block(obs)
            for k in np.flatnonzero(ended).tolist():
                put_row(obs, k, self._engine.final_row(answer.final_obs, k))
        truncated = answer.truncated & ~answer.terminated & ended
        returns, lengths = self._returns[ids], self._lengths[ids]
        infos = _Infos(answer.infos, None if whole else np.flatnonzero(live)) if answer.infos else None
        if whole:
            return StepBlock(self.all_ids, obs, answer.reward, ended, truncated, returns, lengths, infos, whole=True)
        rows = np.flatnonzero(live)
        return StepBlock(
            ids[rows],
            take_rows(obs, rows),
            answer.reward[rows],
            ended[rows],
            truncated[rows],
            returns[rows],
            lengths[rows],
            infos,
        )

    def _set_ready(self, obs: Any) -> None:
        if not self._some_idle:
            self._ready, self._ready_block = self._present, obs
            return
        self._ready_rows = np.flatnonzero(~self._beginning[self._present] & ~self._over[self._present])
        self._ready, self._ready_block = self._present[self._ready_rows], take_rows(obs, self._ready_rows)

    # ------------------------------------------------------------------ life
    def _open(self) -> None:
        if any(dict(c) != dict(self._env_cfg[0]) for c in self._env_cfg):
            raise ConfigError('a vectorised env has one config for all envs; for different ones use another manager')
        if self._reset_param:
            raise ConfigError('a vectorised env takes no reset_param')
        if not self._cfg['auto_reset']:
            raise ConfigError('env.manager.auto_reset: a vectorised env resets by itself')
        self._engine = self._make_engine()
        self.asynchronous = self._engine.batch_size != self._env_num
        self._set_info(BaseEnvInfo(1, self._engine.obs.info, self._engine.act.info, reward_info()))
        self._reward_size = 1
        self._start()

    def _make_engine(self) -> Any:
        make = getattr(self._env_fn, 'create_vector_env', None)
        return self._env_fn(self._env_cfg) if make is None else make(self._env_cfg)

    def _start(self) -> None:
        if self._dynamic_seed is False:
            self.faults.say_once('a vectorised env goes on from its seed: episodes differ although it is fixed')
        n = self._env_num
        self._no, self._returns, self._lengths = np.zeros(n, bool), np.zeros(n), np.zeros(n, np.int64)
        self._beginning, self._over, self._some_idle = np.zeros(n, bool), np.zeros(n, bool), False
        self._episodes, self._states = [0] * n, [EnvState.RUN] * n
        ids, obs = self._engine.start(list(self._seeds))
        self._present = ids
        self._zeros: dict[int, np.ndarray] = {}
        self._set_ready(obs)

    def _reset(self, ids: list[int]) -> None:
        if len(ids) != self._env_num or self._reset_param:
            raise EnvStateError('a vectorised env resets all envs together, without parameters')
        self._start()

    def _start_again(self, error: Exception) -> StepBlock:
        """The engine failed: all unfinished episodes are lost, and a new one takes its place."""
        kind = 'invalid' if isinstance(error, InvalidStepError) else 'error'
        fault = EnvFault(0, 'step', kind, describe_error(error))
        lost, episodes, over = np.flatnonzero(~self._over).tolist(), list(self._episodes), self._over.copy()
        self.faults.strike(fault)
        for tries in range(self._max_retry + 1):
            if tries:
                time.sleep(self._cfg['retry_waiting_time'])
            try:
                self._engine.close()
                self._engine = self._make_engine()
                self._start()
            except Exception as again:
                fault = EnvFault(0, 'build', 'error', describe_error(again))
                self.faults.record(fault)
                continue
            break
        else:
            raise self.faults.error(fault)
        self._episodes, self._over = episodes, over
        self._some_idle = bool(over.any())
        self._set_ready(self._ready_block)
        empty = np.zeros(0, np.int64)
        return StepBlock(
            empty,
            take_rows(self._ready_block, empty),
            np.zeros(0, np.float32),
            np.zeros(0, bool),
            np.zeros(0, bool),
            np.zeros(0),
            empty,
            None,
            tuple(lost),
        )

    def _check_finite(self, answer: Any) -> None:
        for part in (*tree_leaves(answer.obs), answer.reward):
            if part.dtype.kind == 'f':
                flat = part.reshape(-1)
                zeros = self._zeros.get(len(flat))
                if zeros is None or zeros.dtype != flat.dtype:
                    zeros = self._zeros[len(flat)] = np.zeros(len(flat), flat.dtype)
                if flat.dot(zeros) != 0.0 and np.isnan(flat).any():
                    raise InvalidStepError('the observations or rewards have NaN in them')

    def advice(self) -> None:
        """There are no single envs whose steps could be measured."""

    def _send_seeds(self, ids: list[int]) -> None:
        """Seeds count from the next reset on."""

    def _call(self, name: str, calls: list[tuple[tuple, dict]] | None, ids: Iterable[int]) -> list[Any]:
        return self._engine.ask(name, None if calls is None else calls[0])

    def _shut(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _ready_ids(self) -> np.ndarray:
        return np.zeros(0, np.int64) if self._closed else self._ready

    def _restarted_obs(self, ids: Iterable[int]) -> Any:
        place = {i: k for k, i in enumerate(self._ready.tolist())}
        return take_rows(self._ready_block, [place[i] for i in ids])

    def env_info(self) -> Any:
        if self._env_info is None:
            engine = self._make_engine()
            try:
                self._env_info = BaseEnvInfo(1, engine.obs.info, engine.act.info, reward_info())
            finally:
                engine.close()
        return self._env_info


class _Infos:
    """The infos of a vectorised env, turned into one dict a row when asked for."""

    def __init__(self, infos: dict, rows: np.ndarray | None) -> None:
        self._infos, self._rows = infos, rows

    def __call__(self) -> dict[int, dict]:
        found: dict[int, dict] = {}
        for key, column in self._infos.items():
            mask = self._infos.get('_' + key)
            if key.startswith('_') or not isinstance(column, np.ndarray):
                continue
            for k, value in enumerate(column):
                if mask is None or mask[k]:
                    found.setdefault(k, {})[key] = value
        if self._rows is None:
            return found
        return {place: found[k] for place, k in enumerate(self._rows.tolist()) if k in found}
