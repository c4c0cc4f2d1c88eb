"""Envs that come vectorised (Gymnasium's vector envs, ALE's, EnvPool), as one group."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ActionRows
from nervex.envs.hosting.block import SLOTS, BlockStore, Check, copy_row, write_row
from nervex.envs.hosting.messages import FORKS, EnvFault, Events, HostSetup, describe_error, kind_of, leave_copy
from nervex.envs.hosting.one_env import FAILURES, METHOD, load_env, renewed_seed, save_env
from nervex.utils import tree
from nervex.utils.errors import ConfigError
from nervex.worker.actor.env_manager.backend import PENDING, InProcess, WorkerLost

logger = logging.getLogger(__name__)
EMPTY = b'[]'  # the saved state of an env that is part of another one's


class Vectorised(InProcess):
    """
    Overview:
        One engine as in ``nervex.envs.vector_engine``, which ``env_fn`` makes: a class with
        ``create_vector_env(cfgs)`` (GymEnv has it), or a function. All ready envs step together. With engines that
        reset in the step after an end, that env waits for one step; what is answered for it then is no step.
    """

    partial_steps = False

    def launch(self, g: int, setup: HostSetup) -> None:
        """Job: make the engine."""
        self.host = self._host(setup)
        self.answers.append((g, self.host.make()))

    def attach(self, g: int) -> None:
        """Have the engine write to that memory from now on."""
        super().attach(g)
        self.step_all = self._step_all

    def _step_all(self, slot: int, actions: Any, ids: np.ndarray) -> Any:
        answer = self.host.step(slot, self.rows.block(actions), ids)
        if not isinstance(answer, WorkerLost):
            return answer
        self.answers.append((0, answer))
        return PENDING

    @staticmethod
    def _host(setup: HostSetup) -> Any:
        return _EngineHost(setup)

    @staticmethod
    def info(env_fn: Callable[[dict], Any], cfgs: Sequence[dict]) -> Any:
        """The envs' description before they are launched."""
        engine = _make_engine(env_fn, cfgs)
        try:
            return engine.info()
        finally:
            engine.close()


class _EngineHost:
    """What an EnvHost is to single envs; its ``step`` takes the actions as a block, and may answer WorkerLost."""

    step_all: Any = None  # see Vectorised
    _engine: Any = None

    def __init__(self, setup: HostSetup) -> None:
        if any(dict(c) != dict(setup.cfgs[0]) for c in setup.cfgs):
            raise ConfigError('a vectorised env has one config for all envs; for different ones use another manager')
        if any(setup.reset_kwargs):
            raise ConfigError('a vectorised env takes no reset_param')
        if not setup.auto_reset:
            raise ConfigError('env.manager.auto_reset: a vectorised env resets by itself')
        if setup.describe and any(seed is not None and seed[1] is False for seed in setup.seeds):
            logger.warning('a vectorised env goes on from its seed: episodes differ although it is fixed')
        self._setup, self._num, self.first_id = setup, len(setup.cfgs), setup.first_id
        self._forks = FORKS[0]
        fixed = [seed is not None and seed[1] is False for seed in setup.seeds]
        self._fixed: list[bool] = fixed  # which seeds hold for every start; the others for the next one
        self._seeds: list[int | None] = [
            None if seed is None else renewed_seed(seed[0], renewed, seed[1])
            for seed, renewed in zip(setup.seeds, setup.renewed)
        ]

    def make(self) -> Any:
        """Make the engine; answers as EnvHost does."""
        setup = self._setup
        try:
            self._engine = _make_engine(setup.env_fn, setup.cfgs)
            self._check()
            self._first = self._start()
        except FAILURES as error:
            if setup.describe and not isinstance(error, SystemExit):
                raise
            return EnvFault(0, 'build', kind_of(error), describe_error(error))
        return (self._engine.info(), tree.index(self._first, 0)) if setup.describe else None

    def _start(self) -> Any:
        first = self._engine.start(list(self._seeds))
        self._seeds = [seed if fixed else None for seed, fixed in zip(self._seeds, self._fixed)]
        return first

    def _check(self) -> None:
        if (size := getattr(self._engine, 'batch_size', self._num)) != self._num:
            text = f'got {size}, but with env_manager_type vector all {self._num} envs step together; take async_vector'
            raise ConfigError([f'env.vector_kwargs.batch_size: {text}'])

    def attach(self, store: BlockStore, low: int, action_rows: ActionRows) -> None:
        """Write into this store from now on, and take blocks of such actions."""
        self._store, self._action_rows = store, action_rows
        self._checks = [Check(store, slot, 0, self._num, rewards=True) for slot in range(SLOTS)]

    # ------------------------------------------------------------------ jobs
    def obey(self, name: str, args: tuple) -> Any:
        """Run a job that a manager gives by name."""
        if name == 'begin':
            return self._begin(args[0])
        if name == 'call':
            _, attribute, calls = args
            return [METHOD if callable(v) else v for v in self._engine.ask(attribute, calls and calls[0])]
        if name in ('save', 'load'):
            return getattr(self, f'_{name}')(*args)
        for i, seed in zip(*args[:2]):
            self._seeds[i], self._fixed[i] = seed, args[2] is False  # it counts from the next reset on
        return None

    def _save(self, ids: Sequence[int]) -> list[bytes | None]:
        """The engine with what is counted here, which stands with the first env; None for each if it has no state."""
        counted = [self._returns, self._lengths, self._seeds]
        saved = save_env(self._engine, counted, None) if hasattr(self._engine, 'state_dict') else None
        return [saved, *[None if saved is None else EMPTY] * (len(ids) - 1)]

    def _load(self, ids: Sequence[int], states: list[bytes]) -> None:
        self._engine, (self._returns, self._lengths, self._seeds), _ = load_env(self._engine, states[0])

    def _begin(self, slot: int) -> WorkerLost | None:
        """All episodes begin; the first time they have already."""
        self._waiting: list[int] = []  # envs whose next answer is the first observation of an episode
        self._returns, self._lengths = np.zeros(self._num), np.zeros(self._num, np.int64)
        try:
            first = self._start() if self._first is None else self._first
            self._first = None
            self._store.reward[slot][:] = 0  # the next engine must not be blamed for what the last one paid
            self._write(slot, first)
        except FAILURES as error:
            return self._failed(error)
        return None

    def step(self, slot: int, actions: Any, ids: Sequence[int] | np.ndarray) -> Any:
        """A step of the engine: Events or None; WorkerLost if it failed, for then all unfinished episodes are lost."""
        everyone = len(ids) == self._num
        if not everyone:
            actions = self._padded(slot - 1, list(ids), actions)
        try:
            answer = self._engine.exchange(actions)
            if FORKS[0] != self._forks:
                leave_copy()
            self._lengths += 1
            self._store.reward[slot][:] = answer.reward
            self._write(slot, answer.obs)
        except FAILURES as error:
            return self._failed(error)
        self._returns += answer.reward if answer.reward.ndim == 1 else answer.reward.sum(1, dtype=np.float64)
        ended = answer.terminated | answer.truncated
        if everyone and not answer.infos and not np.count_nonzero(ended):  # 1 us faster than any()
            return None
        events, live, begun = Events(), np.ones(self._num, bool), self._waiting
        if not everyone:
            live[:] = False
            live[list(ids)] = True
            events.stepped = list(map(int, ids))
        self._returns[begun], self._lengths[begun] = 0.0, 0
        if answer.infos:
            events.infos = _Infos(answer.infos, live, range(self._num))
        events.finished = [self._end(slot, answer, k, k) for k in (ended & live).nonzero()[0].tolist()]
        if begun or not self._engine.same_step:
            self._waiting = [] if self._engine.same_step else events.finished
            events.waiting = self._waiting
        return events

    def _padded(self, slot: int, ids: list[int], actions: Any) -> np.ndarray:
        """Actions for all envs: those that do not step get one that means nothing, the first that is legal there."""
        rows = self._action_rows
        dtype = actions.dtype if ids else np.float32 if rows.kind == 'continuous' else np.int64
        full, before = np.zeros((self._num, *(rows.shape or ())), dtype), self._store.obs[slot]
        if isinstance(before, dict) and 'action_mask' in before:
            full[:] = before['action_mask'].argmax(-1)
        if ids:
            full[ids] = actions
        return full

    def _end(self, slot: int, answer: Any, k: int, i: int) -> int:
        """The last step of an episode: row k of the answer, of env i."""
        store = self._store
        store.truncated[i] = answer.truncated[k] and not answer.terminated[k]
        store.episode_return[i], store.episode_length[i] = self._returns[i], self._lengths[i]
        self._returns[i], self._lengths[i] = 0.0, 0
        if answer.final_obs is None:
            copy_row(store.final_rows[i], store.rows[slot][i])
        else:
            write_row(store.final_rows[i], self._engine.final_row(answer.final_obs, k))
        return i

    def _write(self, slot: int, obs: Any) -> None:
        """Store observations; they and the rewards must be finite numbers, and everybody may take some action."""
        copy_row(self._store.obs[slot], obs)
        self._look_over(slot)

    def _look_over(self, slot: int) -> None:
        check = self._checks[slot]
        legal = check.mask is None or check.mask.any(-1).all()
        if not legal or any(view.dot(zeros) for view, zeros in check.floats):
            for k, step in enumerate(self._lengths.tolist()):
                for look in (check.finite, check.paid, check.legal):
                    look(k, k, step)

    def _failed(self, error: BaseException) -> WorkerLost:
        with contextlib.suppress(*FAILURES):
            self.close()
        return WorkerLost(kind_of(error), describe_error(error), one_fault=True)

    def close(self) -> list[EnvFault]:
        """End the engine; may be called twice."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        return []


class _AsyncHost(_EngineHost):
    """Sends actions to all envs that have answered, and answers with whichever come first."""

    def _check(self) -> None:
        if not hasattr(self._engine, 'recv'):
            text = f"got 'async_vector', but {type(self._engine).__name__} steps all its envs at once; take 'vector'"
            raise ConfigError([f'env.env_manager_type: {text}'])

    def _begin(self, slot: int) -> WorkerLost | None:
        self._idle = np.ones(self._num, bool)  # envs whose answer has come: they can be sent an action
        self._live = np.zeros(self._num, bool)  # envs that were sent an action which somebody chose
        self._held = np.zeros(self._num, bool)  # envs whose end the manager may not have delivered yet
        self._episodes = np.zeros(self._num)
        return super()._begin(slot)

    def step(self, slot: int, actions: Any, ids: Sequence[int] | np.ndarray) -> Any:
        """
        Overview:
            Send these envs their actions, and one that means nothing to those that begin their next episode by it or
            are done. Answers with the first envs to answer. The manager gives all that are ready an action and delivers
            what has come then; steps of nobody, in which it waits for an episode to begin, may come before that. So
            who ends in one of these is left alone until after the next step: its last row must not be written over.
            That many envs are always under way as an answer has, for the last batch was delivered.
        """
        mine = [int(i) for i in ids]
        full, sent = self._padded(slot, mine, actions), self._episodes >= self._setup.episode_num
        sent[self._waiting] = True
        sent &= self._idle & ~self._held
        sent[mine] = self._live[mine] = True
        try:
            if sent.any():
                self._engine.send(full[sent], np.flatnonzero(sent))
            came, answer = self._engine.recv()
            if FORKS[0] != self._forks:
                leave_copy()
            self._idle[sent] = False
            self._idle[came] = True
            self._lengths[came] += 1
            self._store.reward[slot][came] = answer.reward
            tree.write(self._store.obs[slot], came, answer.obs)
            self._look_over(slot)
        except FAILURES as error:
            return self._failed(error)
        self._returns[came] += answer.reward if answer.reward.ndim == 1 else answer.reward.sum(1, dtype=np.float64)
        order = came.tolist()
        begun = [i for i in self._waiting if i in order]
        self._returns[begun], self._lengths[begun] = 0.0, 0
        events, live = Events(), self._live[came]
        self._live[came] = False
        events.stepped = sorted(came[live].tolist())
        if answer.infos:
            events.infos = _Infos(answer.infos, live, order)
        ended = ((answer.terminated | answer.truncated) & live).nonzero()[0].tolist()
        events.finished = [self._end(slot, answer, k, order[k]) for k in ended]
        self._episodes[events.finished] += 1
        of_nobody = isinstance(actions, tuple)  # no actions, not even none
        self._held &= of_nobody
        self._held[events.finished] = of_nobody
        self._waiting = events.waiting = [i for i in self._waiting if i not in order] + events.finished
        return events


class AsyncVectorised(Vectorised):
    """
    Overview:
        An engine that answers with some of its envs at a time, whichever are first: it has, besides what
        ``Vectorised`` needs, ``send(actions, ids)``, which does not wait, and ``recv() -> (ids, Answer)``. An env
        begins its next episode by the action after the one that ended the last.
    """

    @staticmethod
    def _host(setup: HostSetup) -> Any:
        return _AsyncHost(setup)


def _make_engine(env_fn: Any, cfgs: Sequence[dict]) -> Any:
    if isinstance(env_fn, type) and not (hasattr(env_fn, 'create_vector_env') or hasattr(env_fn, 'exchange')):
        text = f"got 'vector', but {env_fn.__name__} has no create_vector_env(cfgs); take another one, or env_type: gym"
        raise ConfigError(f'env.env_manager_type: {text}')
    return getattr(env_fn, 'create_vector_env', env_fn)(list(cfgs))


class _Infos:
    """The infos of a vectorised env, whose row k is of env ``ids[k]``, turned into one dict an env when asked for."""

    def __init__(self, infos: dict, live: np.ndarray, ids: Sequence[int]) -> None:
        self._infos, self._live, self._ids = infos, live, ids

    def __call__(self) -> dict[int, dict]:
        last, over = self._infos.get('final_info', {}), self._infos.get('_final_info', False)
        now = {name: column for name, column in self._infos.items() if column is not last}
        found = {**_rows(now, self._live & ~np.asarray(over)), **_rows(last, self._live & over)}
        return {self._ids[k]: row for k, row in found.items()}


def _rows(infos: dict, live: np.ndarray) -> dict[int, dict]:
    """Columns of infos, with a mask each, by the rows that are live."""
    found: dict[int, dict] = {}
    for key, column in infos.items():
        there = live & infos.get('_' + key, True)
        if key.startswith('_') or not there.any():
            continue
        if isinstance(column, dict):
            parts: Any = _rows(column, there)
        else:
            parts = {k: column[k] for k in np.flatnonzero(there).tolist()} if isinstance(column, np.ndarray) else {}
        for k, part in parts.items():
            found.setdefault(k, {})[key] = part
    return found
