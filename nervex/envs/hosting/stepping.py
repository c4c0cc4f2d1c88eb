"""How each env of a host is called: ``step_into`` where the env offers it, else ``step`` with its answer checked."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ARRAY, NUMPY, PLAIN
from nervex.envs.hosting.layout import InvalidStepError, write_row


def make_loop(host: Any) -> tuple[Callable[[int, Sequence[Any], Iterable[int]], Any], str, list[int | None]]:
    """
    Overview:
        The loop that steps the envs of a host: (slot, actions, which) -> events; the form in which the envs take single
        numbers as actions; and their time limits, where the host is to keep them. The loops are closures, so that all
        they use is at hand without attribute look-ups; for Gym objects that need no conversion there is one that calls
        them itself (benchmark rows ``nervex.base`` of env_bench, bigobs most of all).
    """
    layout, size = host.store.layout, host.store.reward_size
    if size == 1 and not isinstance(layout, dict) and not layout.is_object:
        direct = [found for env in host.envs if (found := getattr(env, 'direct_step', _none)()) is not None]
        if len(direct) == host.num:
            return _direct_loop(host, [step for step, _ in direct]), NUMPY, [limit for _, limit in direct]
    form = PLAIN if all(has_step_into(env) for env in host.envs) else ARRAY
    return _step_into_loop(host, [make_stepper(env, size) for env in host.envs]), form, [None] * host.num


def _none() -> None:
    """Of an env that must be asked by its adapter."""


def _step_into_loop(host: Any, steppers: list[Callable]) -> Callable:
    """For envs that write their own row."""
    all_rows, all_rewards, everyone = host.rows, host.reward_cells, host.everyone
    returns, settle, fail = host.returns, host.settle, host.fail

    def loop(slot: int, actions: Sequence[Any], which: Iterable[int]) -> Any:
        events, rewards = None, all_rewards[slot]
        for k, stepper, row, action in _calls(which, everyone, steppers, all_rows[slot], actions):
            try:
                reward, terminated, truncated, info = stepper(action, row)
                try:
                    rewards[k] = reward
                except (TypeError, ValueError):  # an array or list of one number, or no number at all
                    rewards[k] = reward = reward_of(reward, 1)
                returns[k] += reward
                if terminated is False and truncated is False and not info:
                    continue
                events = settle(k, slot, terminated, truncated, info, events)
            except FAILURES as error:
                events = fail(k, error, events)
        return events

    return loop


def _direct_loop(host: Any, steps: list[Callable]) -> Callable:
    """For Gym objects that need no conversion."""
    all_rewards, everyone, array = host.reward_cells, host.everyone, np.ndarray
    returns, settle, fail = host.returns, host.settle, host.fail
    shape, dtype = host.store.layout.shape, host.store.layout.dtype
    # A memoryview of one axis compares shape and format itself when it is assigned to.
    flat = len(shape) == 1
    all_rows = [[memoryview(row) for row in rows] for rows in host.rows] if flat else host.rows

    def loop(slot: int, actions: Sequence[Any], which: Iterable[int]) -> Any:
        events, rewards = None, all_rewards[slot]
        for k, step, row, action in _calls(which, everyone, steps, all_rows[slot], actions):
            try:
                obs, reward, terminated, truncated, info = step(action)
                if flat:
                    try:
                        row[:] = obs
                    except (ValueError, TypeError):  # another dtype or shape: converted, or refused with words
                        write_row(row.obj, obs)
                elif type(obs) is array and obs.dtype is dtype and obs.shape == shape:
                    row[...] = obs
                else:
                    write_row(row, obs)
                try:
                    rewards[k] = reward
                except (TypeError, ValueError):
                    rewards[k] = reward = reward_of(reward, 1)
                returns[k] += reward
                if terminated is False and truncated is False and not info:
                    continue
                events = settle(k, slot, terminated, truncated, info, events)
            except FAILURES as error:
                events = fail(k, error, events)
        return events

    return loop


def _calls(which: Iterable[int], everyone: range, steps: list, rows: list, actions: Sequence[Any]) -> Iterable[tuple]:
    """(index, step, row, action) of each env that is to step."""
    if which is everyone:
        return zip(everyone, steps, rows, actions)
    return [(k, steps[k], rows[k], action) for k, action in zip(which, actions)]


FAILURES = (Exception, SystemExit)  # what an env may raise without ending the run


def has_step_into(env: Any) -> bool:
    """
    Overview:
        Whether ``step_into`` may stand for ``step``: it is defined, and ``step`` is not overridden later, neither in a
        subclass nor on the object.
    """
    if not callable(getattr(type(env), 'step_into', None)) or 'step' in getattr(env, '__dict__', {}):
        return False
    order = type(env).__mro__
    into = next(i for i, base in enumerate(order) if 'step_into' in base.__dict__)
    step = next((i for i, base in enumerate(order) if 'step' in base.__dict__), len(order))
    return into <= step


def make_stepper(env: Any, reward_size: int) -> Callable[[Any, Any], tuple[Any, Any, Any, Any]]:
    """A function (action, row) -> (reward, terminated, truncated, info) that writes the next observation into row."""
    if has_step_into(env):
        return env.step_into if reward_size == 1 else _vector_reward(env.step_into, reward_size)
    step = env.step

    def step_into(action: Any, row: Any) -> tuple[Any, bool, bool, Any]:
        answer = step(action)
        if not isinstance(answer, tuple) or len(answer) not in (4, 5):
            raise InvalidStepError(f'step() must return BaseEnvTimestep(obs, reward, done, info), got {answer!r}')
        if len(answer) == 5:
            obs, reward, terminated, truncated, info = answer
            ended, cut = flag(terminated, 'terminated'), flag(truncated, 'truncated')
        else:
            obs, reward, done, info = answer
            ended, cut = (False, False) if done is False else _ending(done, info)
        write_row(row, obs)
        return reward if type(reward) is float else reward_of(reward, reward_size), ended, cut, info

    return step_into


def reward_of(reward: Any, size: int) -> Any:
    """A float, or a float32 vector of ``size`` numbers; everything else is an InvalidStepError."""
    array = np.asarray(reward)
    if array.dtype.kind not in 'biuf' or array.size != size:
        raise InvalidStepError(f'the reward must be {"a number" if size == 1 else f"{size} numbers"}, got {reward!r}')
    return float(array.reshape(-1)[0]) if size == 1 else array.reshape(size).astype(np.float32)


def flag(value: Any, name: str) -> bool:
    """A bool from a Python, NumPy or torch bool (or 0/1); None and the like are an InvalidStepError."""
    if type(value) is bool:
        return value
    if value is None or isinstance(value, (str, tuple, list, dict)) or np.size(value) != 1:
        raise InvalidStepError(f'{name} must be a bool, got {value!r}')
    return bool(value)


def _ending(done: Any, info: Any) -> tuple[bool, bool]:
    """(terminated, truncated) of a 4-tuple: the info tells whether it was only a time limit."""
    if not flag(done, 'done'):
        return False, False
    cut = isinstance(info, dict) and bool(info.get('truncated', info.get('TimeLimit.truncated', False)))
    return not cut, cut


def _vector_reward(step_into: Callable, size: int) -> Callable:
    def checked(action: Any, row: Any) -> tuple[Any, Any, Any, Any]:
        reward, terminated, truncated, info = step_into(action, row)
        return reward_of(reward, size), terminated, truncated, info

    return checked
