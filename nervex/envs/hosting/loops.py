"""
The inner loops of a step: what runs once per env and step, and nothing else.

Both are closures, made once for a host, so that all they use is at hand without attribute look-ups.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.layout import write_row
from nervex.envs.hosting.stepper import reward_of


def make_loop(host: Any) -> tuple[Callable[[int, Sequence[Any], Iterable[int], Any], Any], list[int | None] | None]:
    """
    Overview:
        The loop that suits the host's envs: (slot, actions, which, events) -> events; and, if it calls the envs' own
        ``step`` directly, their time limits, which the host then has to keep.
    """
    direct = [env.direct_step() if hasattr(env, 'direct_step') else None for env in host.envs]
    layout = host.store.layout
    if (
        all(d is not None for d in direct)
        and host.store.reward_size == 1
        and not isinstance(layout, dict)
        and not layout.is_object
    ):
        return _direct_loop(host, [d[0] for d in direct]), [d[1] for d in direct]
    return _step_into_loop(host), None


def _cells(host: Any) -> list[Any]:
    """Where the rewards of a slot go: memoryviews, which take single numbers faster than NumPy's arrays do."""
    return [memoryview(rewards) for rewards in host.rewards] if host.store.reward_size == 1 else host.rewards


def _step_into_loop(host: Any) -> Callable:
    """For envs that write their own row."""
    all_rows, all_rewards, steppers = host.rows, _cells(host), host.steppers
    returns, settle, fail = host.returns, host.settle, host.fail

    def loop(slot: int, actions: Sequence[Any], which: Iterable[int], events: Any) -> Any:
        rows, rewards = all_rows[slot], all_rewards[slot]
        for k, action in zip(which, actions):
            try:
                reward, terminated, truncated, info = steppers[k](action, rows[k])
                try:
                    rewards[k] = reward
                except (TypeError, ValueError):  # an array or list of one number, or no number at all
                    rewards[k] = reward = reward_of(reward, 1)
                returns[k] += reward
                if terminated is False and truncated is False and not info:
                    continue
                events = settle(k, slot, terminated, truncated, info, events)
            except Exception as error:
                events = fail(k, error, events)
        return events

    return loop


def _direct_loop(host: Any, steps: list[Callable]) -> Callable:
    """For Gymnasium envs that need no conversion: calls their own ``step``, saves the adapter's call."""
    all_rows, all_rewards = host.rows, _cells(host)
    returns, settle, fail = host.returns, host.settle, host.fail
    leaf, array = host.store.layout, np.ndarray
    shape, dtype = leaf.shape, leaf.dtype
    # A memoryview compares shape and format itself when it is assigned to, and is faster than a NumPy row.
    views = [[memoryview(row) for row in rows] for rows in all_rows] if len(shape) == 1 else None
    everyone = host.everyone

    def calls(which: Iterable[int], rows: list, actions: Sequence[Any]) -> Iterable[tuple]:
        if which is everyone:
            return zip(everyone, steps, rows, actions)
        return [(k, steps[k], rows[k], action) for k, action in zip(which, actions)]

    def vector_loop(slot: int, actions: Sequence[Any], which: Iterable[int], events: Any) -> Any:
        rows, rewards = views[slot], all_rewards[slot]
        for k, step, row, action in calls(which, rows, actions):
            try:
                obs, reward, terminated, truncated, info = step(action)
                try:
                    row[:] = obs
                except (ValueError, TypeError):  # another dtype or shape: converted, or refused with words
                    write_row(all_rows[slot][k], obs)
                try:
                    rewards[k] = reward
                except (TypeError, ValueError):  # an array or list of one number, or no number at all
                    rewards[k] = reward = reward_of(reward, 1)
                returns[k] += reward
                if terminated is False and truncated is False and not info:
                    continue
                events = settle(k, slot, terminated, truncated, info, events)
            except Exception as error:
                events = fail(k, error, events)
        return events

    def loop(slot: int, actions: Sequence[Any], which: Iterable[int], events: Any) -> Any:
        rows, rewards = all_rows[slot], all_rewards[slot]
        for k, step, row, action in calls(which, rows, actions):
            try:
                obs, reward, terminated, truncated, info = step(action)
                if type(obs) is array and obs.dtype is dtype and obs.shape == shape:
                    row[...] = obs
                else:
                    write_row(row, obs)
                try:
                    rewards[k] = reward
                except (TypeError, ValueError):  # an array or list of one number, or no number at all
                    rewards[k] = reward = reward_of(reward, 1)
                returns[k] += reward
                if terminated is False and truncated is False and not info:
                    continue
                events = settle(k, slot, terminated, truncated, info, events)
            except Exception as error:
                events = fail(k, error, events)
        return events

    return loop if views is None else vector_loop
