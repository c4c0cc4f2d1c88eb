"""EnvHost: the envs that one process (or thread) owns: it builds, seeds, resets and steps them, and writes rows."""

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ActionRows
from nervex.envs.hosting.block import (
    SLOTS,
    BlockStore,
    Check,
    InvalidStepError,
    copy_row,
    write_row,
)
from nervex.envs.hosting.messages import EnvFault, Events, HostSetup, describe_error, kind_of
from nervex.envs.hosting.one_env import FAILURES, ask_env, flag, load_env, make_env, renewed_seed, save_env
from nervex.envs.hosting.stepping import make_loop, make_steps
from nervex.utils.errors import ExtraMissingError


class EnvHost:
    """
    Overview:
        The envs of one group, by local index 0, 1, ...; whatever it answers has env ids. Errors of an env never leave
        ``step``: they become EnvFaults, and the manager decides what follows.
    Interfaces:
        make, attach, step, step_all, obey (begin, seed, call, save, load), close
    """

    store: Any = None  # a BlockStore once it is attached
    step: Any = None  # made by ``make_steps`` then
    step_all: Any = None
    loop: Any = None
    _first: Any = None  # the first observation of env 0, if it was reset to describe the envs

    def __init__(self, setup: HostSetup) -> None:
        n = len(setup.cfgs)
        self.num, self.first_id, self._setup = n, setup.first_id, setup
        self.envs: list[Any] = [None] * n
        self.everyone = range(n)
        self._seeds = list(setup.seeds)
        self._reset_kwargs = list(setup.reset_kwargs)
        self._renewed = list(setup.renewed)
        self._episodes = [0] * n
        self.returns: list[Any] = [0.0] * n
        self.age, self.born = 0, [0] * n  # steps so far; the step before an env's episode began
        self.dirty = False
        self.resetting: Any = [0]  # a cell that tells a watching process which env is being reset, counted from 1

    # ------------------------------------------------------------------ building
    def make(self) -> Any:
        """
        Overview:
            Make all envs. If it is to describe them, env 0 is reset before there is any memory to write to.
        Returns:
            - answer (:obj:`Any`): an EnvFault; or (``info()`` of env 0, its first observation), else None
        """
        phase, k = 'build', 0
        try:
            for k in self.everyone:
                self._build(k)
            if self._setup.describe:
                phase, k = 'reset', 0
                info = self.envs[0].info()
                self._first = self.envs[0].reset(**self._reset_kwargs[0])
                return info, self._first
        except ExtraMissingError:
            raise  # a package that is not installed will not be there at the next try either
        except FAILURES as error:
            return self.fault(k, phase, error)
        return None

    def _build(self, index: int) -> None:
        """Make one env and seed it."""
        self.envs[index] = make_env(self._setup.env_fn, self._setup.cfgs[index])
        self._apply_seed(index)

    def attach(self, store: BlockStore, low: int, action_rows: ActionRows) -> None:
        """Write into rows ``low ..`` of this store from now on, and take blocks of such actions."""
        self.store, self.action_rows, high = store, action_rows, low + self.num
        self.rows = [store.rows[slot][low:high] for slot in range(SLOTS)]
        self.final_rows = store.final_rows[low:high]
        self.checks = [Check(store, slot, low, high, rewards=False) for slot in range(SLOTS)]
        self.sums = self.returns if store.reward_size == 1 else ()
        self.done, self._truncated = store.done[low:high], store.truncated[low:high]
        self.done[:] = False  # a predecessor that died may have left an end there
        self._episode_return, self._episode_length = store.episode_return[low:high], store.episode_length[low:high]
        self._bind()
        self.step, self.step_all = make_steps(self)

    def _bind(self) -> None:
        """Look (again) how the envs want to be stepped."""
        self.loop, self.split, self._limits = make_loop(self)
        self.due = 0.0

    # ------------------------------------------------------------------ asked from outside
    def obey(self, name: str, args: Sequence[Any]) -> Any:
        """Run a job that a manager gives by name."""
        return self._JOBS[name](self, *args)

    def _begin(self, slot: int, ids: Sequence[int], how: Sequence[tuple[bool, dict, int]]) -> Events | None:
        """
        Overview:
            Begin episodes. None if all went well.
        Arguments:
            - how (:obj:`Sequence[tuple]`): for each env: whether in a new one, the keyword arguments of its resets, and
              how many episodes it has had
        """
        events = Events()
        for i, (renew, kwargs, episodes) in zip(ids, how):
            k = i - self.first_id
            self._reset_kwargs[k], self._episodes[k] = kwargs, episodes
            try:
                if renew:
                    self._close_env(k)
                    self._renewed[k] += 1  # with dynamic seeds it does not replay the old one's episodes
                    self._build(k)
                    self._bind()
                self._reset(k, slot)
            except FAILURES as error:
                events.faults.append(self.fault(k, 'reset', error))
        return events if events.faults else None

    def _seed(self, ids: Sequence[int], seeds: Sequence[int], dynamic_seed: bool | None) -> None:
        """Seed envs; None leaves the choice between dynamic and fixed to the env."""
        for k, seed in zip([i - self.first_id for i in ids], seeds):
            self._seeds[k], self._renewed[k] = (int(seed), dynamic_seed), 0
            self._apply_seed(k)

    def _call(self, ids: Sequence[int], name: str, calls: list[tuple[tuple, dict]] | None) -> list[Any]:
        """An attribute of each env (METHOD if it can be called), or the answers of a method."""
        envs = [self.envs[i - self.first_id] for i in ids]
        answers = [ask_env(env, name, None if calls is None else calls[k]) for k, env in enumerate(envs)]
        if calls is not None:  # the method may have changed how the env steps
            self._bind()
        return answers

    def _save(self, ids: Sequence[int]) -> list[bytes | None]:
        """Envs in the middle of their episodes; None for one that cannot be saved."""
        saved = []
        for k in [i - self.first_id for i in ids]:
            counters = [self.returns[k], self.age - self.born[k], self._episodes[k], self._renewed[k]]
            saved.append(save_env(self.envs[k], counters, self._seeds[k]))
        return saved

    def _load(self, ids: Sequence[int], states: list[bytes]) -> None:
        for k, state in zip([i - self.first_id for i in ids], states):
            self.envs[k], counters, self._seeds[k] = load_env(self.envs[k], state)
            self.returns[k], length, self._episodes[k], self._renewed[k] = counters
            self.born[k] = self.age - length
        self._bind()

    # ------------------------------------------------------------------ running
    def _reset(self, index: int, slot: int) -> None:
        """Begin an episode of one env and write its first observation; raises what the env raises."""
        self.resetting[0] = index + 1
        try:
            if index == 0 and self._first is not None:
                obs, self._first = self._first, None
            else:
                obs = self.envs[index].reset(**self._reset_kwargs[index])
            self.returns[index], self.born[index] = 0.0, self.age
            write_row(self.rows[slot][index], obs)
            self.checks[slot].finite(index, self.first_id + index, 0, 'the first observation')
            self.checks[slot].legal(index, self.first_id + index, 0)
        finally:
            self.resetting[0] = 0

    def end_overdue(self, slot: int, which: Iterable[int], events: Events | None) -> Events | None:
        """
        Overview:
            End the episodes that have reached a time limit that is kept here. None can before the step ``_due``, so
            that other steps need not look.
        """
        faulty = {fault.env_id - self.first_id for fault in events.faults} if events else ()
        for k in which:
            if self._limits[k] == self.age - self.born[k] and k not in faulty:
                info = events.infos.pop(self.first_id + k, None) if events else None
                try:
                    events = self.settle(k, slot, False, True, info, events)
                except FAILURES as error:
                    events = self.fail(k, error, events)
        self.due = min((born + limit for born, limit in zip(self.born, self._limits) if limit), default=math.inf)
        return events

    def fault(self, index: int, phase: str, error: BaseException) -> EnvFault:
        """The record of an error, with the env's own traceback."""
        return EnvFault(self.first_id + index, phase, kind_of(error), describe_error(error))

    def fail(self, k: int, error: BaseException, events: Events | None) -> Events:
        """Add the fault of a step."""
        events = events or Events()
        events.faults.append(self.fault(k, 'step', error))
        return events

    def settle(
        self, k: int, slot: int, terminated: Any, truncated: Any, info: Any, events: Events | None
    ) -> Events | None:
        """What seldom happens in a step: an info, or the end of an episode."""
        if info is not None and not isinstance(info, dict):
            raise InvalidStepError(f'info must be a dict, got {info!r}')
        terminated, truncated = flag(terminated, 'terminated'), flag(truncated, 'truncated')
        if info and info.get('abnormal'):
            events = events or Events()
            text = f'the env calls itself abnormal: {info}'
            events.faults.append(EnvFault(self.first_id + k, 'step', 'abnormal', text))
            return events
        if not (terminated or truncated):
            if info:
                events = events or Events()
                events.infos[self.first_id + k] = info
            return events
        total, env, length = self.returns[k], self.first_id + k, self.age - self.born[k]
        self.checks[slot].finite(k, env, length)
        self.checks[slot].paid(k, env, length)
        if type(total) is not float:  # a vector reward
            total = float(np.sum(total))
        events = events or Events()
        events.finished.append(env)
        truncated = truncated and not terminated
        self.dirty = self.done[k] = True
        self._truncated[k] = truncated
        self._episode_return[k], self._episode_length[k] = total, length
        if info and not (len(info) == 2 and info.get('final_eval_reward') == total and 'truncated' in info):
            events.infos[env] = info
        copy_row(self.final_rows[k], self.rows[slot][k])
        self.returns[k], self.born[k] = 0.0, self.age
        self._episodes[k] += 1
        if self._setup.auto_reset and self._episodes[k] < self._setup.episode_num:
            try:
                self._reset(k, slot)
            except FAILURES as error:
                events.faults.append(self.fault(k, 'reset', error))
        return events

    def find_wrong(self, slot: int, events: Events, which: Iterable[int]) -> Events | None:
        """Slow path of the checks in ``step``: which env wrote NaN or infinity, or allows no action?"""
        known, check = {fault.env_id for fault in events.faults}.union(events.finished), self.checks[slot]
        for k in which:
            env, step = self.first_id + k, self.age - self.born[k]
            if env in known:
                continue
            try:
                for look in (check.finite, check.legal, check.paid):
                    look(k, env, step)
            except InvalidStepError as error:
                events.infos.pop(env, None)
                events.faults.append(self.fault(k, 'step', error))
        return events if events.faults or events.finished or events.infos else None

    # ------------------------------------------------------------------ the rest
    def _close_env(self, index: int) -> None:
        """Close one env, if it was built."""
        env, self.envs[index] = self.envs[index], None
        if env is not None:
            env.close()

    def close(self) -> list[EnvFault]:
        """Close all envs; what their ``close`` raises is answered, not raised. The host is of no use any more."""
        faults = []
        for index in range(self.num):
            try:
                self._close_env(index)
            except FAILURES as error:
                faults.append(self.fault(index, 'close', error))
        self.loop = self.step = self.step_all = self.store = None  # the loop holds this host, and the host the memory
        return faults

    def _apply_seed(self, index: int) -> None:
        env, wanted = self.envs[index], self._seeds[index]
        if env is None or wanted is None:
            return
        seed, dynamic = wanted
        seed = renewed_seed(seed, self._renewed[index], dynamic)
        if dynamic is None or 'dynamic_seed' not in inspect.signature(env.seed).parameters:
            env.seed(seed)
        else:
            env.seed(seed, dynamic_seed=dynamic)

    _JOBS: dict[str, Callable] = dict(
        make=make, begin=_begin, seed=_seed, call=_call, save=_save, load=_load, close=close
    )
