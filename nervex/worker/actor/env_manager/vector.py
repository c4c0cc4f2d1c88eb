"""Envs that come vectorised (Gymnasium's vector envs, ALE's, EnvPool), as one group."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nervex.envs import BaseEnvInfo
from nervex.envs.hosting.actions import ActionRows
from nervex.envs.hosting.host import METHOD, EnvFault, Events, HostSetup, describe_error, kind_of
from nervex.envs.hosting.layout import InvalidStepError, copy_row, not_finite, write_row
from nervex.envs.hosting.stepping import FAILURES
from nervex.envs.hosting.store import SLOTS, BlockStore
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

    def launch(self, g: int, setup: HostSetup) -> None:
        """Job: make the envs of a group."""
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
        """Make the memory that steps write to."""
        self._store, self._rows = BlockStore(layout, self._num, reward_size), action_rows
        floats, zeros = self._store.floats, np.zeros(self._num, np.float32)
        self._floats = [[*floats(slot, 0, self._num), (self._store.reward[slot], zeros)] for slot in range(SLOTS)]
        self._reset()
        if not self.asynchronous:
            self.step_all = self._step_all
        return self._store

    def _reset(self) -> None:
        """Nothing is known of any episode."""
        n = self._num
        self._acted = np.zeros(n, bool)  # envs that have an action and have not answered
        self._beginning: set[int] = set()  # ... whose next answer is the first observation of an episode
        self._returns, self._lengths = np.zeros(n), np.zeros(n, np.int64)

    def attach(self, g: int) -> None:
        """The engine's answers are copied, so nothing is to be told."""

    # ------------------------------------------------------------------ jobs
    def ask(self, g: int, name: str, args: tuple) -> None:
        """Job: an attribute or a method of the envs of a group."""
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
            self._reset()
            self._write(slot, present, first)
        except FAILURES as error:
            return self._failed(error)
        absent = sorted(set(range(self._num)).difference(present.tolist()))
        self._beginning.update(absent)
        events = Events()
        events.waiting = absent
        return events if absent else None

    def step(self, g: int, slot: int, ids: Sequence[int], actions: Any) -> None:
        """Job: step these envs of a group."""
        full = self._padded(np.array(ids, np.int64), actions)
        self.answers.append((g, self._exchange(slot, full[self._present])))

    def _step_all(self, slot: int, actions: Any, ids: np.ndarray) -> Any:
        actions, everyone = self._rows.block(actions), len(ids) == self._num
        answer = self._exchange(slot, actions if everyone else self._padded(ids, actions), everyone)
        if not isinstance(answer, WorkerLost):
            return answer
        self.answers.append((0, answer))
        return PENDING

    def _padded(self, ids: np.ndarray, actions: Any) -> np.ndarray:
        """Actions for all envs: those that do not step get one that means nothing."""
        self._acted[ids] = True
        dtype = actions.dtype if len(ids) else np.float32 if self._rows.kind == 'continuous' else np.int64
        full = np.zeros((self._num, *(self._rows.shape or ())), dtype)
        if len(ids):
            full[ids] = actions
        return full

    def _exchange(self, slot: int, actions: np.ndarray, everyone: bool = False) -> Any:
        """A step of the engine: Events or None; WorkerLost if it failed, for then all unfinished episodes are lost."""
        try:
            answer = self._engine.exchange(self._present, actions)
            ids = answer.env_id
            rows: Any = ids if self.asynchronous else slice(None)
            self._lengths[rows] += 1
            self._store.reward[slot][rows] = answer.reward
            self._write(slot, rows, answer.obs)
        except FAILURES as error:
            return self._failed(error)
        self._present = ids
        self._returns[rows] += answer.reward
        ended = answer.terminated | answer.truncated
        if everyone and not answer.infos and not np.count_nonzero(ended):  # 1 us faster than any()
            return None
        events = Events()
        if not everyone:
            live = self._acted[ids]
            self._acted[ids] = False
            ended &= live
            events.stepped = ids[live].tolist()
        if self._beginning:
            events.begun = [i for i in ids.tolist() if i in self._beginning]
            self._beginning.difference_update(events.begun)
            for i in events.begun:
                self._returns[i], self._lengths[i] = 0.0, 0
        if answer.infos:
            events.infos = _Infos(answer.infos, ids, np.ones(len(ids), bool) if everyone else live)
        for k in ended.nonzero()[0].tolist():
            events.finished.append(self._end(slot, answer, k))
        if not self._engine.same_step:
            self._beginning.update(events.finished)
            events.waiting = events.finished
        return events

    def _end(self, slot: int, answer: Any, k: int) -> int:
        """The last step of an episode in row k of the answer."""
        i, store = int(answer.env_id[k]), self._store
        store.truncated[i] = answer.truncated[k] and not answer.terminated[k]
        store.episode_return[i], store.episode_length[i] = self._returns[i], self._lengths[i]
        self._returns[i], self._lengths[i] = 0.0, 0
        if answer.final_obs is None:
            copy_row(store.final_rows[i], store.rows[slot][i])
        else:
            write_row(store.final_rows[i], self._engine.final_row(answer.final_obs, k))
        return i

    def _write(self, slot: int, rows: Any, obs: Any) -> None:
        """Store observations; they and the rewards must be finite numbers."""
        if type(obs) is np.ndarray:
            self._store.obs[slot][rows] = obs
        else:
            tree.write(self._store.obs[slot], rows, obs)
        for view, zeros in self._floats[slot]:
            if not_finite(view, zeros):
                env = np.flatnonzero(~np.isfinite(view.reshape(self._num, -1)).all(1))[0]
                text = f'the observation or reward of env {env} at step {self._lengths[env]} of the episode has '
                text += f'{view[~np.isfinite(view)][0]} in it'
                for other, _ in self._floats[slot]:
                    np.nan_to_num(other, copy=False)  # the next engine must not be blamed for it
                raise InvalidStepError(text)

    # ------------------------------------------------------------------ ending
    def _failed(self, error: BaseException) -> WorkerLost:
        with contextlib.suppress(*FAILURES):
            self.close()
        return WorkerLost(kind_of(error), describe_error(error), one_fault=True)

    def close(self) -> list[EnvFault]:
        """End all groups and free everything; tells what the envs' ``close`` raised."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        return []

    @staticmethod
    def info(env_fn: Callable[[dict], Any], cfgs: Sequence[dict]) -> Any:
        """The envs' description before they are launched."""
        engine = _make_engine(env_fn, cfgs)
        try:
            return _info(engine)
        finally:
            engine.close()


def _make_engine(env_fn: Any, cfgs: Sequence[dict]) -> Any:
    if isinstance(env_fn, type) and not hasattr(env_fn, 'create_vector_env'):
        text = f"got 'vector', but {env_fn.__name__} has no create_vector_env(cfgs); take another one, or env_type: gym"
        raise ConfigError(f'env.env_manager_type: {text}')
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
