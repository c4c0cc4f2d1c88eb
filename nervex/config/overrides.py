"""``-o policy.learn.learning_rate=3e-4``: settings from the command line on top of a config."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from easydict import EasyDict

from nervex.config.aliases import EXCLUSIVE, same_setting
from nervex.config.read import parse_value
from nervex.config.tree import get_path, plain_copy, pop_path, set_path
from nervex.loader.problems import Problems
from nervex.utils.class_config import merge_config
from nervex.utils.errors import ConfigError


def apply_overrides(cfg: Mapping, overrides: Iterable[str]) -> EasyDict:
    """
    Overview:
        A copy of ``cfg`` with settings replaced. A setting given here also replaces its older spellings and the
        settings that must agree with it. Whether a path exists is checked by ``compile_config``.
    Arguments:
        - overrides (:obj:`Iterable[str]`): ``'path=value'``, the value as YAML: ``3e-4``, ``true``, ``null``, ``[64]``
    """
    problems = Problems()
    new = override_tree(plain_copy(cfg), overrides, problems)
    problems.raise_if_any()
    return EasyDict(new)


def override_tree(tree: dict[str, Any], overrides: Iterable[str], problems: Problems) -> dict[str, Any]:
    """As ``apply_overrides``, on a dict of one's own, with the mistakes gathered."""
    if isinstance(overrides, str):
        overrides = [overrides]
    parsed = [_parse(text, problems) for text in overrides]
    settings = dict(filter(None, parsed))
    for path in settings:
        for other in (same_setting(path) | _below_each_buffer(tree, path)) - set(settings):
            pop_path(tree, other, prune=False)
    for first, second in EXCLUSIVE:
        for chosen, left_out in ((first, second), (second, first)):
            if settings.get(chosen) is not None and left_out not in settings:
                pop_path(tree, left_out, prune=False)
    for path, value in settings.items():
        old = get_path(tree, path)
        if isinstance(old, dict) and isinstance(value, dict):
            value = merge_config(old, value)
        if not set_path(tree, path, value):
            problems.add(path, f'cannot be set: {_blocking(tree, path)} is a value and holds no settings')
    return tree


def _parse(text: Any, problems: Problems) -> tuple[str, Any] | None:
    path, sign, value = str(text).partition('=')
    path = path.strip()
    if not sign or not path or not all(part and part == part.strip() for part in path.split('.')):
        problems.add('', f'override {text!r}: must be written path=value, e.g. policy.learn.learning_rate=3e-4')
        return None
    try:
        return path, parse_value(value)
    except (yaml.YAMLError, ConfigError) as error:
        problems.add(path, f'the value {value!r} is not valid YAML ({getattr(error, "problem", None) or error})')
        return None


def _below_each_buffer(tree: dict[str, Any], path: str) -> set[str]:
    """A setting for all buffers also replaces what single buffers say."""
    section, _, key = path.partition('.')
    buffers = get_path(tree, 'replay_buffer')
    if section != 'replay_buffer' or '.' in key or not isinstance(buffers, dict):
        return set()
    below = {f'replay_buffer.{name}.{key}' for name, value in buffers.items() if isinstance(value, dict)}
    return below.union(*(same_setting(other) for other in below))


def _blocking(tree: Any, path: str) -> str:
    keys = path.split('.')
    for n in range(1, len(keys)):
        node = get_path(tree, '.'.join(keys[:n]))
        if not isinstance(node, dict):
            return f'{".".join(keys[:n])} ({node!r})'
    return path
