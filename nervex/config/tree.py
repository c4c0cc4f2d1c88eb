"""Nested dicts addressed by dotted paths: look up, set, remove, copy what can be read."""

import re
from collections.abc import Mapping
from typing import Any

from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.utils.class_config import plain_copy as plain_copy

MISSING = object()
_NO_TEXT = re.compile('[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]')
DEEPEST, MOST = 30, 100_000  # levels and values of a config


def get_path(tree: Any, path: str, default: Any = None) -> Any:
    """The value at ``a.b.c``, or ``default`` where the path ends early."""
    for key in path.split('.'):
        if not isinstance(tree, Mapping) or key not in tree:
            return default
        tree = tree[key]
    return tree


def has_path(tree: Any, path: str) -> bool:
    """Whether there is a value (None counts) at ``a.b.c``."""
    return get_path(tree, path, MISSING) is not MISSING


def set_path(tree: dict, path: str, value: Any) -> bool:
    """Set the value at ``a.b.c``, making dicts on the way; False (and no change) where the way is not a dict."""
    *parents, last = path.split('.')
    node: Any = tree
    for key in parents:
        if not isinstance(node, dict):
            return False
        node = node.setdefault(key, {})
    if not isinstance(node, dict):
        return False
    node[last] = value
    return True


def pop_path(tree: dict, path: str, prune: bool = True) -> Any:
    """
    Overview:
        Remove and answer the value at ``a.b.c``; MISSING if there is none.
    Arguments:
        - prune (:obj:`bool`): dicts that this leaves empty go too (not the sections at the top)
    """
    parent, _, last = path.rpartition('.')
    node = get_path(tree, parent) if parent else tree
    if not isinstance(node, dict) or last not in node:
        return MISSING
    value = node.pop(last)
    if prune and not node and '.' in parent:
        pop_path(tree, parent)
    return value


def readable(tree: Mapping, problems: Problems) -> dict[str, Any]:
    """
    Overview:
        A copy of what a user gave, made of plain dicts and lists. Keys that are no strings, or names of Python's own,
        are reported and left out; so is everything of a tree that is endless, or nearly.
    """
    left = MOST

    def copied(value: Any, path: str, level: int) -> Any:
        nonlocal left
        left -= 1
        if level > DEEPEST or left < 0:
            raise RecursionError
        if isinstance(value, Mapping):
            kept = {}
            for key, part in dict.items(value) if isinstance(value, dict) else value.items():
                if not isinstance(key, str):
                    problems.add(path, f'the key {shown(key)} is a {type(key).__name__}, must be a str')
                elif key.startswith('__') and key.endswith('__'):
                    problems.add(path, f'the key {shown(key)} is a name of Python itself, and no setting')
                else:
                    kept[key] = copied(part, f'{path}.{key}' if path else key, level + 1)
            return kept
        if type(value) in (list, tuple):
            return type(value)(copied(part, path, level + 1) for part in value)
        if isinstance(value, str) and _NO_TEXT.search(value):
            problems.add(path, f'got {shown(value)}, must be text without control characters or halves of one')
            return ''
        return value

    try:
        return copied(tree, '', 0)
    except RecursionError:
        text = f'more than {DEEPEST} levels' if left >= 0 else f'more than {MOST} values'
        problems.add('', f'the config has {text}, or holds itself')
        return {}
