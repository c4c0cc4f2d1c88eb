"""``-o policy.learn.learning_rate=3e-4``: settings from the command line on top of a config."""

from collections.abc import Iterable, Mapping
from typing import Any

from nervex.config.config import read_config
from nervex.config.tree import MISSING, get_path, pop_path, readable, set_path
from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.utils.class_config import merge_config
from nervex.utils.config_helper import load_yaml
from nervex.utils.errors import ConfigError


def override(tree: dict[str, Any], overrides: Iterable[str], problems: Problems) -> set[str]:
    """
    Overview:
        Set what the command line says, in place.
    Arguments:
        - overrides (:obj:`Iterable[str]`): ``'path=value'``, the value as YAML: ``3e-4``, ``true``, ``null``, ``[64]``
    Returns:
        - strong (:obj:`set[str]`): the paths that it gave, down to single settings
    """
    strong: set[str] = set()
    for text in [overrides] if isinstance(overrides, str) else overrides:
        path, sign, written = str(text).partition('=')
        path = path.strip()
        if not sign or not path or not all(part and part == part.strip() for part in path.split('.')):
            problems.add('', f'override {text!r}: must be written path=value, e.g. policy.learn.learning_rate=3e-4')
            continue
        try:
            value = load_yaml(written) if written.strip() else ''
        except ConfigError as error:
            problems.add(path, f'the value {shown(written)} is {error}')
            continue
        wrapped: dict[str, Any] = {}
        set_path(wrapped, path, value)
        value = get_path(readable(wrapped, problems), path, MISSING)
        if value is MISSING:
            continue
        old = get_path(tree, path)
        if not set_path(
            tree, path, merge_config(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        ):
            problems.add(path, f'cannot be set: {_blocking(tree, path)} is a value and holds no settings')
        strong |= {path, *_leaves(value, path)}
    return strong


def overridden(config: str | Mapping, overrides: Iterable[str]) -> dict[str, Any]:
    """A config as it is written, with overrides; what is wrong with these is told when it is compiled."""
    given = merge_config(config if isinstance(config, Mapping) else read_config(config), {})
    override(given, overrides, Problems())
    return given


def drop_outdone(tree: dict[str, Any], strong: set[str]) -> None:
    """An override for all buffers also replaces what single buffers say."""
    buffers = tree.get('replay_buffer')
    for name, own in buffers.items() if isinstance(buffers, dict) else ():
        for key in list(own) if isinstance(own, dict) else ():
            if f'replay_buffer.{key}' in strong and f'replay_buffer.{name}.{key}' not in strong:
                pop_path(tree, f'replay_buffer.{name}.{key}', prune=False)


def _leaves(value: Any, path: str) -> Iterable[str]:
    for key, part in value.items() if isinstance(value, Mapping) else ():
        yield f'{path}.{key}'
        yield from _leaves(part, f'{path}.{key}')


def _blocking(tree: Any, path: str) -> str:
    parts = path.split('.')
    ways = ['.'.join(parts[:n]) for n in range(1, len(parts))]
    way = next(way for way in ways if not isinstance(get_path(tree, way), dict))
    return f'{way} ({shown(get_path(tree, way))})'
