"""Settings that follow from others, and checks across sections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from nervex.config.aliases import EXCLUSIVE
from nervex.config.tree import get_path, has_path, set_path
from nervex.loader.exception import shown
from nervex.loader.problems import Problems
from nervex.utils.declare import Section


def fill_ties(
    resolved: dict[str, Any],
    given: Mapping,
    declared: Mapping[str, Section],
    may_hold: Callable[[str], bool],
    problems: Problems,
) -> None:
    """
    Overview:
        A fact that has two settings is stated once: what was given for one goes to all, else the first default does.
    Arguments:
        - declared (:obj:`Mapping[str, Section]`): the sections; a setting's ``same_as`` names the one that it follows
        - may_hold (:obj:`Callable`): whether a setting can be added at that path (declared, or an open section)
    """
    groups: dict[str, list[str]] = {}
    for name, section in declared.items():
        for path, entry in section.leaves(f'{name}.', hidden=True):
            if entry.same_as:
                groups.setdefault(entry.same_as, [entry.same_as]).append(path)
    for group in groups.values():
        stated = {path: get_path(given, path) for path in group if get_path(given, path) is not None}
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
        defaults = [get_path(resolved, path) for path in group if get_path(resolved, path) is not None]
        for path in group:
            if (values or defaults) and (has_path(resolved, path) or may_hold(path)):
                set_path(resolved, path, (values or defaults)[0])


def _endless(value: Any) -> Any:
    return math.inf if value == 'inf' else value


def settle_exclusive(resolved: dict[str, Any], given: Mapping, problems: Problems) -> None:
    """Of two settings that exclude each other the given one silences the other's default; one of them is needed."""
    for first, second in EXCLUSIVE:
        if not (has_path(resolved, first) and has_path(resolved, second)):
            continue
        in_first, in_second = get_path(given, first) is not None, get_path(given, second) is not None
        if in_first and in_second:
            problems.add(
                first,
                f'got {get_path(given, first)!r} and {second} = {get_path(given, second)!r}; give only one of them',
            )
        elif in_first or in_second:
            set_path(resolved, second if in_first else first, None)
        elif get_path(resolved, first) is None and get_path(resolved, second) is None:
            problems.add(first, f'missing; give it, or {second}: how much one round of collecting is')


def cross_check(resolved: dict[str, Any], problems: Problems) -> None:
    """Everything that one setting alone cannot tell."""
    _check_buffer_sizes(resolved, problems)
    _check_lengths(resolved, problems)
    _check_cuda(resolved, problems)


def _number(tree: Mapping, path: str) -> float | None:
    value = _endless(get_path(tree, path))
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _check_buffer_sizes(resolved: dict[str, Any], problems: Problems) -> None:
    names = get_path(resolved, 'replay_buffer.buffer_name') or []
    batch = get_path(resolved, 'policy.learn.batch_size')
    for name in names:
        size = _number(resolved, f'replay_buffer.{name}.meta_maxlen')
        if size is None or size < 1:  # a wrong size is reported already
            continue
        wanted = {
            path: get_path(resolved, path)
            for path in ('policy.learn.init_data_count', f'replay_buffer.{name}.replay_start_size')
        }
        wanted['policy.learn.batch_size'] = batch.get(name) if isinstance(batch, Mapping) else batch
        for path, rows in wanted.items():
            if isinstance(rows, (int, float)) and not isinstance(rows, bool) and rows > size:
                problems.add(
                    path,
                    f"got {rows}, must be at most the size of buffer '{name}' (replay_buffer.{name}."
                    f'meta_maxlen = {size}), which would never hold enough; make one of them fit',
                )


def _check_lengths(resolved: dict[str, Any], problems: Problems) -> None:
    unroll, traj = _number(resolved, 'policy.collect.unroll_len'), _number(resolved, 'policy.collect.traj_len')
    if unroll is not None and traj is not None and unroll > traj:
        problems.add(
            'policy.collect.unroll_len',
            f'got {unroll}, must be at most policy.collect.traj_len = {traj}: a '
            'training sample is cut out of one window of steps',
        )


def _check_cuda(resolved: dict[str, Any], problems: Problems) -> None:
    if get_path(resolved, 'policy.use_cuda') is not True:
        return
    import torch  # only asked for here: checking a config needs no torch otherwise

    if not torch.cuda.is_available():
        problems.add(
            'policy.use_cuda',
            f'got True, but torch {torch.__version__} finds no CUDA device; set '
            'policy.use_cuda=False, or install a CUDA build of torch where there is a GPU',
        )
