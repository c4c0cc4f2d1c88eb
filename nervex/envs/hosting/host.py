"""EnvHost: the envs that one process (or thread) owns: it builds, seeds, resets and steps them, and writes rows."""

import inspect
import pickle
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nervex.envs.hosting.actions import ARRAY, NUMPY, PLAIN
from nervex.envs.hosting.calls import LOAD, SAVE, STEP_TIME, ask_env
from nervex.envs.hosting.layout import InvalidStepError, copy_row, write_row
from nervex.envs.hosting.loops import make_loop
from nervex.envs.hosting.step_times import StepTimes
from nervex.envs.hosting.stepper import flag, has_step_into, make_stepper
from nervex.envs.hosting.store import SLOTS, BlockStore


class EnvFault(NamedTuple):
    """What went wrong in one env: ``phase`` is build, reset or step; ``kind`` is error, invalid, abnormal, ..."""

    env_id: int
    phase: str
    kind: str
    text: str


class Events:
    """
    Overview:
        What a step brought besides numbers, by local index: finished episodes, infos (where they say more than the
        usual two things about an end), faults.
    """

    __slots__ = ('faults', 'finished', 'infos')

    def __init__(self) -> None:
        self.finished: list[int] = []
        self.infos: dict[int, dict] = {}
        self.faults: list[EnvFault] = []


class EnvHost:
    """
    Overview:
        Envs ``first_id .. first_id + len(cfgs) - 1`` of a manager, by local index 0, 1, ... Errors of an env never
        leave ``step``: they become EnvFaults, and the manager decides what follows.
    Interfaces:
        build, attach, seed, reset, step, renew, close
    """

    def __init__(
        self,
        env_fn: Callable[[dict], Any],
        cfgs: Sequence[dict],
        first_id: int = 0,
        auto_reset: bool = True,
        episode_num: float = float('inf'),
    ) -> None:
        self.num, self.first_id = len(cfgs), first_id
        self.envs: list[Any] = [None] * self.num
        self.auto_reset, self.episode_num = auto_reset, episode_num
        self.reset_kwargs: list[dict] = [{} for _ in cfgs]
        self.episodes = [0] * self.num
        self._env_fn, self._cfgs = env_fn, list(cfgs)
        self._seeds: list[tuple[int, bool | None] | None] = [None] * self.num
        self.renewed = [0] * self.num
        self.returns: list[Any] = [0.0] * self.num
        self._age, self._born = 0, [0] * self.num  # steps so far; the step before an env's episode began
        self._dirty, self.times = False, StepTimes()
        self.resetting: Any = [0]  # a cell that tells a watching process which env is being reset, counted from 1

    # ------------------------------------------------------------------ building
    def build(self, index: int) -> Any:
        """Make one env (a Gym object is adapted) and seed it."""
        env = self._env_fn(self._cfgs[index])
        if not callable(getattr(env, 'info', None)):
            from nervex.envs.gym_env import GymEnv

            env = GymEnv(env)
        self.envs[index] = env
        if self._seeds[index] is not None:
            self._apply_seed(index)
        return env

    def renew(self, index: int) -> None:
        """Replace one env by a new one; with dynamic seeds it does not replay the old one's episodes."""
        self.close_env(index)
        self.renewed[index] += 1
        self.build(index)
        if self.store is not None:
            self._rebind(index)

    def first_observation(self) -> tuple[Any, Any]:
        """
        Overview:
            Reset env 0 before there is any memory to write to; answers its description (``info()``) and its first
            observation, which the next ``reset`` of it then uses.
        """
        info = self.envs[0].info()
        self._first = self.envs[0].reset(**self.reset_kwargs[0])
        return info, self._first

    _first: Any = None
    store: BlockStore | None = None

    def attach(self, store: BlockStore, low: int = 0) -> None:
        """Write into rows ``low ..`` of this store from now on; all envs are built."""
        self.store, high = store, low + self.num
        self.rows = [store.rows[slot][low:high] for slot in range(SLOTS)]
        self.final_rows = store.final_rows[low:high]
        self._row_checks = [store.row_floats(slot, low, high) for slot in range(SLOTS)]
        self.rewards = [reward[low:high] for reward in store.reward]
        self._floats = [store.floats(slot, low, high) for slot in range(SLOTS)]
        self._sums = self.returns if store.reward_size == 1 else ()
        self._done, self._truncated = store.done[low:high], store.truncated[low:high]
        self._done[:] = False  # a predecessor that died may have left an end there
        self._episode_return, self._episode_length = store.episode_return[low:high], store.episode_length[low:high]
        self.steppers = [make_stepper(env, store.reward_size) for env in self.envs]
        self.everyone = range(self.num)
        self._bind_loop()

    def seed(self, index: int, seed: int, dynamic_seed: bool | None) -> None:
        """Seed one env; None leaves the choice between dynamic and fixed to the env."""
        self._seeds[index] = (int(seed), dynamic_seed)
        self.renewed[index] = 0
        if self.envs[index] is not None:
            self._apply_seed(index)

    # ------------------------------------------------------------------ asked from outside
    def ask(self, index: int, name: str, call: tuple[tuple, dict] | None) -> Any:
        """An attribute or the answer of a method of one env; the names of ``calls`` are about the host."""
        if name == STEP_TIME:
            return self.times.result
        if name == SAVE:
            return self._saved(index)
        if name == LOAD:
            return self._load(index, *call[0])
        answer = ask_env(self.envs[index], name, call)
        if call is not None and self.store is not None:  # the method may have changed how the env steps
            self._rebind(index)
        return answer

    def _saved(self, index: int) -> bytes | None:
        """One env in the middle of its episode; None if it cannot be pickled."""
        length = self._age - self._born[index]
        counters = (self.returns[index], length, self.episodes[index], self.renewed[index])
        try:
            return pickle.dumps((self.envs[index], counters, self._seeds[index]))
        except Exception:  # whatever an env's own __reduce__ may raise: it cannot be saved
            return None

    def _load(self, index: int, state: bytes) -> None:
        self.close_env(index)
        self.envs[index], counters, self._seeds[index] = pickle.loads(state)
        self.returns[index], length, self.episodes[index], self.renewed[index] = counters
        self._born[index] = self._age - length
        self._rebind(index)

    def _rebind(self, index: int) -> None:
        """Look again how this env wants to be stepped."""
        self.steppers[index] = make_stepper(self.envs[index], self.store.reward_size)
        self._bind_loop()

    def _bind_loop(self) -> None:
        """The loop that suits the envs, and the form in which it takes single numbers as actions."""
        loop, limits = make_loop(self)
        plain = all(has_step_into(env) for env in self.envs)
        self.action_form = NUMPY if limits is not None else PLAIN if plain else ARRAY
        self._limits, self._due = limits or [None] * self.num, 0.0
        self._loop = self.times.around(self, loop)

    # ------------------------------------------------------------------ running
    def reset(self, index: int, slot: int) -> None:
        """Begin an episode of one env and write its first observation; raises what the env raises."""
        self.resetting[0] = index + 1
        try:
            if index == 0 and self._first is not None:
                obs, self._first = self._first, None
            else:
                obs = self.envs[index].reset(**self.reset_kwargs[index])
            self.returns[index], self._born[index] = 0.0, self._age
            write_row(self.rows[slot][index], obs)
            self._check_row(slot, index, 'the first observation')
        finally:
            self.resetting[0] = 0

    def step(self, slot: int, actions: Sequence[Any], which: Iterable[int] | None = None) -> Events | None:
        """
        Overview:
            One step of all envs (or of those in ``which``) into this slot.
        Returns:
            - events (:obj:`Events | None`): None if no episode ended, no info came and nothing went wrong
        """
        if self._dirty:
            self._done[:] = False
            self._dirty = False
        self._age += 1
        if which is None:
            which = self.everyone
        else:
            self._let_wait(set(self.everyone).difference(which))
        events = self._loop(slot, actions, which, None)
        if self._age >= self._due:
            events = self._end_overdue(slot, which, events)
        total = sum(self._sums)
        if total != total:  # a reward was NaN
            return self._find_nan(slot, events or Events(), which)
        for view, zeros in self._floats[slot]:
            if view.dot(zeros) != 0.0:  # 0 * x is 0 for every finite x, NaN for the others: one pass, no temporary
                return self._find_nan(slot, events or Events(), which)
        return events

    def _let_wait(self, others: Iterable[int]) -> None:
        """Envs that this step leaves out get no older."""
        for k in others:
            self._born[k] += 1

    def _end_overdue(self, slot: int, which: Iterable[int], events: Events | None) -> Events | None:
        """
        Overview:
            End the episodes that have reached the time limit which is kept here for envs that are stepped directly.
            ``_due`` is the step before which none can have, so that other steps need not look.
        """
        faulty = {fault.env_id - self.first_id for fault in events.faults} if events else ()
        for k in which:
            if self._limits[k] and self._age - self._born[k] >= self._limits[k] and k not in faulty:
                info = events.infos.pop(k, None) if events else None
                try:
                    events = self.settle(k, slot, False, True, info, events)
                except Exception as error:
                    events = self.fail(k, error, events)
        self._due = min((born + limit for born, limit in zip(self._born, self._limits) if limit), default=float('inf'))
        return events

    def fault(self, index: int, phase: str, error: BaseException) -> EnvFault:
        """The record of an error, with the env's own traceback."""
        kind = 'invalid' if isinstance(error, InvalidStepError) else 'error'
        return EnvFault(self.first_id + index, phase, kind, describe_error(error))

    def fail(self, k: int, error: Exception, events: Events | None) -> Events:
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
                events.infos[k] = info
            return events
        total = self.returns[k]
        self._check_row(slot, k, 'the observation')
        if type(total) is not float:  # a vector reward
            total = float(np.sum(total))
        if total != total:
            raise InvalidStepError('the reward is NaN')
        events = events or Events()
        events.finished.append(k)
        truncated = truncated and not terminated
        self._dirty = self._done[k] = True
        self._truncated[k] = truncated
        self._episode_return[k], self._episode_length[k] = total, self._age - self._born[k]
        if info and not (len(info) == 2 and info.get('final_eval_reward') == total and 'truncated' in info):
            events.infos[k] = info
        copy_row(self.final_rows[k], self.rows[slot][k])
        self.returns[k], self._born[k] = 0.0, self._age
        self.episodes[k] += 1
        if self.auto_reset and self.episodes[k] < self.episode_num:
            try:
                self.reset(k, slot)
            except Exception as error:
                events.faults.append(self.fault(k, 'reset', error))
        return events

    def _check_row(self, slot: int, k: int, what: str) -> None:
        """Rows that are about to be overwritten, or have just begun, are checked one by one."""
        for view, zeros in self._row_checks[slot][k]:
            if view.dot(zeros) != 0.0 and np.isnan(view).any():
                raise InvalidStepError(f'{what} has NaN in it: {view.tolist() if view.size <= 8 else "..."}')

    def _find_nan(self, slot: int, events: Events, which: Iterable[int]) -> Events | None:
        """Slow path of the check in ``step``: which env wrote NaN? Infinite values are let through."""
        faulty = {fault.env_id - self.first_id for fault in events.faults}
        for k in which:
            if k in faulty or k in events.finished:
                continue
            try:
                self._check_row(slot, k, 'the observation')
                if np.isnan(self.rewards[slot][k]).any():
                    raise InvalidStepError('the reward is NaN')
            except InvalidStepError as error:
                events.infos.pop(k, None)
                events.faults.append(self.fault(k, 'step', error))
        return events if events.faults or events.finished or events.infos else None

    # ------------------------------------------------------------------ the rest
    def close_env(self, index: int) -> None:
        """Close one env, if it was built."""
        env, self.envs[index] = self.envs[index], None
        if env is not None:
            env.close()

    def close(self) -> list[EnvFault]:
        """Close all envs; what their ``close`` raises is answered, not raised."""
        faults = []
        for index in range(self.num):
            try:
                self.close_env(index)
            except Exception as error:
                faults.append(self.fault(index, 'close', error))
        self._loop = self.store = None  # they hold the memory, and the loop holds this host
        self.steppers, self._floats, self._row_checks = [], [], []
        self.rows = self.rewards = self.final_rows = ()
        self._done = self._truncated = self._episode_return = self._episode_length = None
        return faults

    def _apply_seed(self, index: int) -> None:
        seed, dynamic = self._seeds[index]
        env = self.envs[index]
        if self.renewed[index] and dynamic is not False:
            seed = int(np.random.SeedSequence([abs(seed), self.renewed[index]]).generate_state(1)[0] % (2**31))
        if dynamic is None or 'dynamic_seed' not in inspect.signature(env.seed).parameters:
            env.seed(seed)
        else:
            env.seed(seed, dynamic_seed=dynamic)


def describe_error(error: BaseException) -> str:
    """The error with its traceback."""
    return ''.join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()


def reward_size(info: Any) -> int:
    """1 for the usual scalar reward, else the length of the vector that ``rew_space`` declares."""
    shape = getattr(getattr(info, 'rew_space', None), 'shape', None)
    if shape is None or isinstance(shape, dict):
        return 1
    return max(1, int(np.prod(shape)))
