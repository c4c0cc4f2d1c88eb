"""Nested dicts addressed by dotted paths: copy, look up, set, remove."""

from collections.abc import Mapping
from typing import Any

from nervex.utils.class_config import plain_copy as plain_copy

MISSING = object()


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
    *parents, last = path.split('.')
    chain: list[tuple[dict, str]] = []
    node: Any = tree
    for key in parents:
        if not isinstance(node, dict) or key not in node:
            return MISSING
        chain.append((node, key))
        node = node[key]
    if not isinstance(node, dict) or last not in node:
        return MISSING
    value = node.pop(last)
    for parent, key in reversed(chain[1:]):
        if parent[key] or not prune:
            break
        del parent[key]
    return value
