"""Nested containers of columns: the one place that walks dicts, lists, tuples and Batches of arrays and tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Tree = Any  # a leaf (array, tensor, number, None, ...) or a dict, list, tuple, namedtuple or registered class of Trees

_registered: dict[type, tuple[Callable[[Any], Mapping], Callable[[dict], Any]]] = {}
_leaf_kinds: set[type] = set()  # classes that were found to be no containers: to ask again takes twice as long


class TreeError(ValueError):
    """Two trees differ in structure; the text names the place and what stands there in each."""


def register(cls: type, parts: Callable[[Any], Mapping], build: Callable[[dict], Any]) -> None:
    """
    Overview:
        Make a class of named parts a container: ``Batch`` is one.
    Arguments:
        - parts (:obj:`Callable`): object -> mapping of name to part
        - build (:obj:`Callable`): dict of parts -> object
    """
    _registered[cls] = parts, build
    _leaf_kinds.discard(cls)


def children(tree: Tree) -> Mapping[Any, Tree] | None:
    """The parts of a container by key, or by position; None for a leaf."""
    kind = type(tree)
    if kind is dict:
        return tree
    if kind in _registered:
        return _registered[kind][0](tree)
    if kind in _leaf_kinds:
        return None
    if isinstance(tree, Mapping):
        return tree
    if isinstance(tree, (list, tuple)):
        return dict(enumerate(tree))
    _leaf_kinds.add(kind)
    return None


def rebuild(like: Tree, parts: dict[Any, Any]) -> Tree:
    """A container of the kind of ``like`` with other parts; any mapping that is not registered becomes a dict."""
    kind = type(like)
    if kind in _registered:
        return _registered[kind][1](parts)
    if isinstance(like, Mapping):
        return parts
    if isinstance(like, tuple) and hasattr(like, '_fields'):
        return kind(*parts.values())
    return list(parts.values()) if isinstance(like, list) else tuple(parts.values())


def map(fn: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """
    Overview:
        ``fn(leaf, *leaves at the same place in the others)`` for every leaf, in the containers of ``tree``.
    """
    if not others:  # the usual kinds at once: no dict of parts is made of a list
        kind = type(tree)
        if kind is dict:
            return {key: map(fn, part) for key, part in tree.items()}
        if kind is list or kind is tuple:
            return kind([map(fn, part) for part in tree])
        if kind in _leaf_kinds:
            return fn(tree)
    parts = children(tree)
    if parts is None:
        return fn(tree, *others)
    beside = [_beside(parts, other, ()) for other in others]
    return rebuild(tree, {key: map(fn, part, *[other[key] for other in beside]) for key, part in parts.items()})


def map_with_path(fn: Callable[..., Any], tree: Tree, *others: Tree, path: tuple = ()) -> Tree:
    """``fn(path, leaf, *leaves at the same place in the others)`` for every leaf, in the containers of ``tree``."""
    parts = children(tree)
    if parts is None:
        return fn(path, tree, *others)
    beside = [_beside(parts, other, path) for other in others]
    found = {
        key: map_with_path(fn, part, *[other[key] for other in beside], path=(*path, key))
        for key, part in parts.items()
    }
    return rebuild(tree, found)


def zip(*trees: Tree, path: tuple = ()) -> Iterator[tuple]:
    """
    Overview:
        ``(path, leaf of the first, leaf of the second, ...)`` for every leaf of trees of equal structure; the path is
        the tuple of keys that leads to it.
    """
    parts = children(trees[0])
    if parts is None:
        yield (path, *trees)
        return
    beside = [_beside(parts, other, path) for other in trees[1:]]
    for key, part in parts.items():
        yield from zip(part, *[other[key] for other in beside], path=(*path, key))


def from_paths(leaves: Iterable[tuple[tuple, Any]]) -> dict:
    """Nested dicts of ``(path, leaf)`` pairs: the inverse of ``zip`` of one tree of mappings."""
    found: dict = {}
    for (*outer, last), leaf in leaves:
        node = found
        for key in outer:
            node = node.setdefault(key, {})
        node[last] = leaf
    return found


def leaves(tree: Tree) -> list[Any]:
    """All leaves, depth first."""
    return [leaf for _, leaf in zip(tree)]


def index(tree: Tree, key: Any) -> Tree:
    """``leaf[key]`` of every leaf: a row, a slice, a gather."""
    return map(lambda leaf: leaf[key], tree)


def write(tree: Tree, key: Any, values: Tree) -> None:
    """``leaf[key] = value`` for every leaf, in place."""
    for _, leaf, value in zip(tree, values):
        leaf[key] = value


def stack(trees: Sequence[Tree], axis: int = 0) -> Tree:
    """Trees of equal structure as one, with a new axis; numbers become an array."""
    return map(lambda *parts: _join('stack', parts, axis), *trees)


def unstack(tree: Tree, count: int) -> list[Tree]:
    """The inverse of ``stack`` along the first axis: one tree a row; what is no array or tensor is indexed."""
    parts = children(tree)
    if parts is None:
        return list(tree.unbind(0)) if is_tensor(tree) else [tree[k] for k in range(count)]
    columns = {key: unstack(part, count) for key, part in parts.items()}
    return [rebuild(tree, {key: rows[k] for key, rows in columns.items()}) for k in range(count)]


def cat(trees: Sequence[Tree], axis: int = 0) -> Tree:
    """Trees of equal structure joined along an axis that they have."""
    return map(lambda *parts: _join('cat', parts, axis), *trees)


def nbytes(tree: Tree) -> int:
    """Bytes of all arrays and tensors."""
    return sum(getattr(leaf, 'nbytes', 0) for leaf in leaves(tree))


def label(path: tuple) -> str:
    """A path for people: ``'obs.image'``."""
    return '.'.join(str(key) for key in path)


def is_tensor(value: Any) -> bool:
    """Whether a leaf is a torch tensor, without importing torch."""
    torch = sys.modules.get('torch')
    return torch is not None and isinstance(value, torch.Tensor)


def _join(how: str, parts: tuple, axis: int) -> Any:
    if is_tensor(parts[0]):
        torch = sys.modules['torch']
        return torch.stack(parts, axis) if how == 'stack' else torch.cat(parts, axis)
    return np.stack(parts, axis) if how == 'stack' else np.concatenate(parts, axis)


def _beside(parts: Mapping, other: Tree, path: tuple) -> Mapping:
    """The parts of another tree, which must have the same keys."""
    found = children(other)
    if found is None or found.keys() != parts.keys():
        got = f'a leaf ({type(other).__name__})' if found is None else f'{sorted(_names(found))}'
        raise TreeError(f'{label(path) or "the tree"}: expected the parts {sorted(_names(parts))}, got {got}')
    return found


def _names(parts: Mapping) -> list[str]:
    """The keys of a container as text, for messages."""
    return [str(key) for key in parts]
