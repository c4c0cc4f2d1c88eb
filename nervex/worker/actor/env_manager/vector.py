"""Envs that come vectorised (Gymnasium's vector envs, ALE's, EnvPool), as one group."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nervex.envs import BaseEnvInfo
from nervex.envs.hosting.actions import ActionRows
from nervex.envs.hosting.host import METHOD, EnvFault, Events, HostSetup, describe_error, kind_of
from nervex.envs.hosting.layout import InvalidStepError, not_finite, write_row
from nervex.envs.hosting.stepping import FAILURES
from nervex.envs.hosting.store import FINAL, BlockStore
from nervex.envs.spaces import reward_info
from nervex.utils import tree
from nervex.utils.errors import ConfigError
from nervex.worker.actor.env_manager.backend import PENDING, Immediate, WorkerLost

logger = logging.getLogger(__name__)


class Vectorised(Immediate):
    """
    Overview:
        One engine as in ``nervex.envs.vector_engine``, which ``env_fn`` makes: a class with
        ``create_vector_env(cfgs)`` (GymEnv has it), or a function. All ready envs step together. With engines that
        reset in the step after an end, that env waits for one step; what is answered for it then is no step.
    """

    partial_steps = False
    saves = False
    _engine: Any = None

    def __init__(self, env_num: int, cfg: dict, together: bool) -> None:
        super().__init__(env_num, cfg, together)
        self._num = env_num
        self._zeros: dict[tuple[int, Any], np.ndarray] = {}

    def launch(self, g: int, setup: HostSetup) -> None:
        if any(dict(c) != dict(setup.cfgs[0]) for c in setup.cfgs):
            raise ConfigError('a vectorised env has one config for all envs; for different ones use another manager')
        if any(setup.reset_kwargs):
            raise ConfigError('a vectorised env takes no reset_param')
        if not setup.auto_reset:
            raise ConfigError('env.manager.auto_reset: a vectorised env resets by itself')
        if setup.describe and any(seed is not None and seed[1] is False for seed in setup.seeds):
            logger.warning('a vectorised env goes on from its seed: episodes differ although it is fixed')
        self._seeds: list[int | None] = [None if seed is None else seed[0] for seed in setup.seeds]
        try:
            self._engine = engine = _make_engine(setup.env_fn, setup.cfgs)
            self.asynchronous = engine.batch_size != self._num
            self._present, self._first = engine.start(list(self._seeds))
        except Exception as error:
            if setup.describe:
                raise
            self.answers.append((g, EnvFault(0, 'build', 'error', describe_error(error))))
            return
        described = (_info(engine), tree.index(self._first, 0)) if setup.describe else None
        self.answers.append((g, described))

    def share(self, layout: Any, reward_size: int, action_rows: ActionRows) -> BlockStore:
        self._store, self._rows = BlockStore(layout, self._num, reward_size), action_rows
        self._reset_masks()
        if not self.asynchronous:
            self.step_all = self._step_all
        return self._store

    def _reset_masks(self) -> None:
        n = self._num
        self._acted = np.zeros(n, bool)  # envs that have an action and have not answered
        self._beginning = np.zeros(n, bool)  # ... whose next answer is the first observation of an episode
        self._returns, self._lengths = np.zeros(n), np.zeros(n, np.int64)

    def attach(self, g: int) -> None:
        """The engine's answers are copied, so nothing is to be told."""

    # ------------------------------------------------------------------ jobs
    def ask(self, g: int, name: str, args: tuple) -> None:
        if name == 'begin':
            self.answers.append((g, self._begin(*args)))
        elif name == 'seed':
            for i, seed in zip(*args[:2]):
                self._seeds[i] = seed  # it counts from the next reset on
            self.answers.append((g, None))
        elif name == 'call':
            _, attribute, calls = args
            found = self._engine.ask(attribute, calls and calls[0])
            self.answers.append((g, [METHOD if callable(v) else v for v in found]))
        else:
            raise NotImplementedError(f'a vectorised env cannot {name}')

    def _begin(self, slot: int, ids: Sequence[int], renew: bool, kwargs: dict, fresh: bool) -> Any:
        """All episodes begin; the first time they have already."""
        try:
            if self._first is None:
                self._present, self._first = self._engine.start(list(self._seeds))
            present, first, self._first = self._present, self._first, None
            self._put(slot, present, first)
            self._check_finite(slot, present)
        except FAILURES as error:
            return self._failed(error)
        self._reset_masks()
        absent = sorted(set(range(self._num)).difference(present.tolist()))
        self._beginning[absent] = True
        events = Events()
        events.waiting = absent
        return events if absent else None

    def step(self, g: int, slot: int, ids: Sequence[int], actions: Any) -> None:
        self._acted[list(ids)] = True
        shape, kind = self._rows.shape or (), self._rows.kind
        full = np.zeros((self._num, *shape), np.float32 if kind == 'continuous' else np.int64)
        if len(ids):
            full = full.astype(actions.dtype)
            full[list(ids)] = actions  # the others get an action that means nothing
        self.answers.append((g, self._exchange(slot, full[self._present])))

    def _step_all(self, slot: int, actions: Any) -> Any:
        self._acted[:] = True
        answer = self._exchange(slot, self._rows.block(actions))
        if not isinstance(answer, WorkerLost):
            return answer
        self.answers.append((0, answer))
        return PENDING

    def _exchange(self, slot: int, actions: np.ndarray) -> Any:
        """A step of the engine: Events or None; WorkerLost if it failed, for then all unfinished episodes are lost."""
        try:
            answer = self._engine.exchange(self._present, actions)
            ids = self._present = answer.env_id
            self._put(slot, ids, answer.obs)
            self._store.reward[slot, ids] = answer.reward
            self._check_finite(slot, ids, 1)
        except FAILURES as error:
            return self._failed(error)
        live = self._acted[ids]
        ended = (answer.terminated | answer.truncated) & live
        self._acted[ids] = False
        self._returns[ids] += answer.reward
        self._lengths[ids] += 1
        infos: Any = _Infos(answer.infos, ids, live) if answer.infos else {}
        if ended.any() or len(ids) < self._num or not live.all():
            return self._sorted(slot, answer, live, ended, infos)
        if not infos:
            return None
        events = Events()
        events.infos = infos
        return events

    def _sorted(self, slot: int, answer: Any, live: np.ndarray, ended: np.ndarray, infos: Any) -> Events:
        """Which rows are steps, which of them the last of an episode, and which are first observations."""
        ids, store, events = answer.env_id, self._store, Events()
        rows, begun = np.flatnonzero(ended), ids[self._beginning[ids]]
        over = ids[rows]
        store.truncated[over] = answer.truncated[rows] & ~answer.terminated[rows]
        store.episode_return[over], store.episode_length[over] = self._returns[over], self._lengths[over]
        if answer.final_obs is None:
            tree.write(store.leaves, (FINAL, over), tree.index(store.leaves, (slot, over)))
        else:
            for k in rows.tolist():
                write_row(store.final_rows[ids[k]], self._engine.final_row(answer.final_obs, k))
        events.stepped, events.finished, events.infos = ids[live].tolist(), over.tolist(), infos
        events.begun = begun.tolist()
        self._beginning[begun] = False
        if not self._engine.same_step:
            self._beginning[over] = True
            events.waiting = events.finished
        for which in (over, begun):
            self._returns[which], self._lengths[which] = 0.0, 0
        return events

    def _put(self, slot: int, ids: np.ndarray, obs: Any) -> None:
        """Store observations where they belong."""
        place = (slot, ids) if self.asynchronous else slot
        if type(obs) is np.ndarray:
            self._store.leaves[place] = obs
        else:
            tree.write(self._store.leaves, place, obs)

    def _check_finite(self, slot: int, ids: np.ndarray, steps: int = 0) -> None:
        """Of what was stored of these envs, ``steps`` after their last one (0: episodes begin, and have no reward)."""
        parts = [leaf[slot] for leaf in tree.leaves(self._store.leaves) if leaf.dtype.kind == 'f']
        for part in parts + [self._store.reward[slot]] * steps:
            part = part[ids] if self.asynchronous else part
            flat = part.reshape(-1)
            key = len(flat), flat.dtype
            if key not in self._zeros:
                self._zeros[key] = np.zeros(*key)
            if not_finite(flat, self._zeros[key]):
                env = ids[np.flatnonzero(~np.isfinite(part.reshape(len(ids), -1)).all(1))[0]]
                step, bad = self._lengths[env] + steps, flat[~np.isfinite(flat)][0]
                raise InvalidStepError(
                    f'the observation or reward of env {env} at step {step} of the episode has {bad} in it'
                )

    # ------------------------------------------------------------------ ending
    def _failed(self, error: BaseException) -> WorkerLost:
        with contextlib.suppress(*FAILURES):
            self.close()
        return WorkerLost(kind_of(error), describe_error(error), one_fault=True)

    def close(self) -> list[EnvFault]:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        return []

    @staticmethod
    def info(env_fn: Callable[[dict], Any], cfgs: Sequence[dict]) -> Any:
        engine = _make_engine(env_fn, cfgs)
        try:
            return _info(engine)
        finally:
            engine.close()


def _make_engine(env_fn: Any, cfgs: Sequence[dict]) -> Any:
    return getattr(env_fn, 'create_vector_env', env_fn)(list(cfgs))


def _info(engine: Any) -> BaseEnvInfo:
    return BaseEnvInfo(1, engine.obs.info, engine.act.info, reward_info())


class _Infos:
    """The infos of a vectorised env, turned into one dict an env when asked for."""

    def __init__(self, infos: dict, ids: np.ndarray, live: np.ndarray) -> None:
        self._infos, self._ids, self._live = infos, ids, live

    def __call__(self) -> dict[int, dict]:
        found: dict[int, dict] = {}
        for key, column in self._infos.items():
            if key.startswith('_') or not isinstance(column, np.ndarray):
                continue
            mask = self._live & self._infos.get('_' + key, True)
            for k in np.flatnonzero(mask).tolist():
                found.setdefault(int(self._ids[k]), {})[key] = column[k]
        return found
