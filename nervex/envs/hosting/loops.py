"""The loop over the envs of a host: what runs once per env and step, and nothing else."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ARRAY, NUMPY, PLAIN
from nervex.envs.hosting.layout import write_row
from nervex.envs.hosting.stepping import FAILURES, has_step_into, make_stepper, reward_of


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
