"""Iterators."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def iter_mapping(iter_: Iterable[Any], mapping: Callable[[Any], Any]) -> Iterator[Any]:
    """Apply a function to every item, when it is asked for."""
    return map(mapping, iter_)
