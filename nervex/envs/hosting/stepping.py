"""How the envs of a host are stepped: ``step_into`` where the env offers it, else ``step`` with its answer checked."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ARRAY, NUMPY, PLAIN, ActionRows
from nervex.envs.hosting.block import write_row
from nervex.envs.hosting.messages import FORKS, Events, leave_copy
from nervex.envs.hosting.one_env import FAILURES, has_step_into, make_stepper, reward_of

Split = Callable[[Any], Sequence[Any]]


def make_steps(host: Any) -> tuple[Callable[..., Events | None], Callable[[int, Any, Any], Events | None]]:
    """
    Overview:
        ``step(slot, actions, which=None)`` of an EnvHost that has its memory: one step of all its envs, or of those
        with the local indices ``which``, into this slot, with one row of the block ``actions`` each. It answers None if
        no episode ended, no info came and nothing went wrong. And ``step_all(slot, actions, ids)``, as backends have
        it. They and the loops are closures, so that all they use is at hand without attribute look-ups (benchmark rows
        ``nervex.base`` of env_bench, bigobs most of all).
    """
    everyone, born, done, sums, forks = host.everyone, host.born, host.done, host.sums, FORKS[0]
    all_floats, all_masks = zip(*[(check.floats, check.mask) for check in host.checks])

    def step(slot: int, actions: Any, which: Sequence[int] | None = None) -> Events | None:
        rows = host.split(actions)
        if host.dirty:
            done[:] = False
            host.dirty = False
        host.age += 1
        if which is None:
            which = everyone
        else:
            for k in set(everyone).difference(which):  # they get no older
                born[k] += 1
        events = host.loop(slot, rows, which)
        if host.age >= host.due:
            events = host.end_overdue(slot, which, events)
        if FORKS[0] != forks:
            leave_copy()
        mask = all_masks[slot]
        if not -3.4e38 < sum(sums) < 3.4e38:  # a reward is NaN, or infinite as it is stored, in float32
            return host.find_wrong(slot, events or Events(), which)
        for view, zeros in all_floats[slot]:
            if view.dot(zeros):  # see Check
                return host.find_wrong(slot, events or Events(), which)
        if mask is not None and not mask.any(-1).all():
            return host.find_wrong(slot, events or Events(), which)
        return events

    def step_all(slot: int, actions: Any, ids: Any) -> Events | None:
        return step(slot, actions)

    return step, step_all


def make_loop(host: Any) -> tuple[Callable[[int, Sequence[Any], Iterable[int]], Any], Split, list[int | None]]:
    """
    Overview:
        The loop that steps the envs of a host as they are now: (slot, rows of actions, which) -> events; what splits a
        block of actions into these rows; and the envs' time limits, where the host is to keep them. For Gym objects
        that need no conversion the loop calls them itself.
    """
    layout, size, rows = host.store.layout, host.store.reward_size, host.action_rows
    if size == 1 and not isinstance(layout, dict) and not layout.is_object:
        offers = [env.direct_step() for env in host.envs if hasattr(env, 'direct_step')]
        direct = [found for found in offers if found is not None]  # the others must be asked by their adapter
        if len(direct) == host.num:
            steps, limits = zip(*direct)
            return _loop(host, list(steps), True), partial(rows.split, form=NUMPY), list(limits)
    split = _plain_rows(rows) if all(has_step_into(env) for env in host.envs) else partial(rows.split, form=ARRAY)
    return _loop(host, [make_stepper(env, size) for env in host.envs], False), split, [None] * host.num


def _plain_rows(rows: ActionRows) -> Split:
    """Actions as Python numbers: at once where each is one number, which is the rule."""
    split, are_numbers = rows.split, rows.shape == ()

    def plain_rows(actions: Any) -> Sequence[Any]:
        if are_numbers and type(actions) is np.ndarray and actions.ndim == 1:
            return actions.tolist()
        return split(actions, PLAIN)

    return plain_rows


def _loop(host: Any, steps: list[Callable], direct: bool) -> Callable:
    """A loop over steppers, which write their env's row, or with ``direct`` over the steps of Gym objects."""
    all_rows, all_rewards = host.rows, [check.rewards for check in host.checks]
    everyone, array = host.everyone, np.ndarray
    returns, settle, fail = host.returns, host.settle, host.fail
    shape, dtype = (host.store.layout.shape, host.store.layout.dtype) if direct else ((), None)
    # A memoryview of one axis compares shape and format itself when it is assigned to.
    flat = len(shape) == 1
    if flat:
        all_rows = [[memoryview(row) for row in rows] for rows in all_rows]

    def loop(slot: int, actions: Sequence[Any], which: Iterable[int]) -> Any:
        events, rewards = None, all_rewards[slot]
        for k, step, row, action in _calls(which, everyone, steps, all_rows[slot], actions):
            try:
                if not direct:
                    reward, terminated, truncated, info = step(action, row)
                else:
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
                except (TypeError, ValueError):  # an array or list of one number, or no number at all
                    rewards[k] = reward = reward_of(reward, 1)
                returns[k] += reward if isinstance(reward, float) else _in_full(reward)
                if terminated is False and truncated is False and not info:
                    continue
                events = settle(k, slot, terminated, truncated, info, events)
            except FAILURES as error:
                events = fail(k, error, events)
        return events

    return loop


def _in_full(reward: Any) -> Any:
    """A reward as sums take it, whose last digits must not depend on the kind of number that an env gives."""
    return reward.astype(np.float64) if type(reward) is np.ndarray and reward.ndim else float(reward)


def _calls(which: Iterable[int], everyone: range, steps: list, rows: list, actions: Sequence[Any]) -> Iterable[tuple]:
    """(index, step, row, action) of each env that is to step."""
    if which is everyone:
        return zip(everyone, steps, rows, actions)
    return [(k, steps[k], rows[k], action) for k, action in zip(which, actions)]
