"""Settings that follow from others, and checks across sections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from nervex.config.tree import get_path, has_path, set_path
from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.utils.declare import Section

#: Settings of which exactly one is given.
EXCLUSIVE: tuple[tuple[str, str], ...] = (('actor.n_sample', 'actor.n_episode'),)


def fill_ties(
    resolved: dict[str, Any],
    given: Mapping,
    declared: Mapping[str, Section],
    may_hold: Callable[[str], bool],
    problems: Problems,
    strong: set[str],
) -> None:
    """
    Overview:
        A fact that has two settings is stated once: what was given for one goes to all, else the first default does.
    Arguments:
        - declared (:obj:`Mapping[str, Section]`): the sections; a setting's ``same_as`` names the one that it follows
        - may_hold (:obj:`Callable`): whether a setting can be added at that path (declared, or an open section)
        - strong (:obj:`set[str]`): paths that overrides gave: they count for the others, too
    """
    groups: dict[str, list[str]] = {}
    for name, section in declared.items():
        for path, entry in section.leaves(f'{name}.', hidden=True):
            if entry.same_as:
                groups.setdefault(entry.same_as, [entry.same_as]).append(path)
    for group in groups.values():
        stated = {path: value for path in group if (value := get_path(given, path)) is not None}
        stated = {path: value for path, value in stated.items() if path in strong} or stated
        values = list(stated.values())
        if values and _endless(values[0]) == math.inf:  # to the end of the episode, but no more than another one says
            values = [value for value in values if _endless(value) != math.inf] or values
        if any(_endless(value) != _endless(values[0]) for value in values[1:]):
            words = ', '.join(f'{path}={shown(value)}' for path, value in stated.items())
            problems.add(
                next(iter(stated)),
                f'{words}: these are one setting in {len(stated)} places and differ; give it once, the others follow',
            )
            continue
        values = values or [value for path in group if (value := get_path(resolved, path)) is not None]
        for path in group if values else ():
            if has_path(resolved, path) or may_hold(path):
                set_path(resolved, path, values[0])


def _endless(value: Any) -> Any:
    return math.inf if value == 'inf' else value


def settle_exclusive(resolved: dict[str, Any], given: Mapping, problems: Problems, strong: set[str]) -> None:
    """Of two settings that exclude each other the given one silences the other's default; one of them is needed."""
    for first, second in EXCLUSIVE:
        if not (has_path(resolved, first) and has_path(resolved, second)):
            continue
        stated = [path for path in (first, second) if get_path(given, path) is not None]
        stated = [path for path in stated if path in strong] or stated
        if len(stated) == 2:
            got = f'got {shown(get_path(given, first))} and {second} = {shown(get_path(given, second))}'
            problems.add(first, f'{got}; give only one of them')
        elif stated:
            set_path(resolved, second if stated == [first] else first, None)
        elif get_path(resolved, first) is None and get_path(resolved, second) is None:
            problems.add(first, f'missing; give it, or {second}: how much one round of collecting is')


def cross_check(resolved: dict[str, Any], problems: Problems) -> None:
    """Everything that one setting alone cannot tell."""
    batch = get_path(resolved, 'policy.learn.batch_size')
    for name in get_path(resolved, 'replay_buffer.buffer_name') or []:
        size = _number(get_path(resolved, f'replay_buffer.{name}.meta_maxlen'))
        paths = ('policy.learn.init_data_count', f'replay_buffer.{name}.replay_start_size')
        wanted = {path: get_path(resolved, path) for path in paths}
        wanted['policy.learn.batch_size'] = batch.get(name) if isinstance(batch, Mapping) else batch
        for path, rows in wanted.items():
            if size is not None and size >= 1 and (_number(rows) or 0) > size:  # a wrong size is reported already
                problems.add(
                    path,
                    f"got {rows}, must be at most the size of buffer '{name}' (replay_buffer.{name}."
                    f'meta_maxlen = {size}), which would never hold enough; make one of them fit',
                )
    if get_path(resolved, 'env.manager.auto_reset') is False:
        problems.add(
            'env.manager.auto_reset',
            'got False, must be True in a run, whose actors play on; an env manager by hand may have it',
        )
    unroll, traj = (_number(get_path(resolved, f'policy.collect.{key}')) for key in ('unroll_len', 'traj_len'))
    if unroll is not None and traj is not None and unroll > traj:
        problems.add(
            'policy.collect.unroll_len',
            f'got {unroll}, must be at most policy.collect.traj_len = {traj}: a '
            'training sample is cut out of one window of steps',
        )


def _number(value: Any) -> float | None:
    value = _endless(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
