"""Iterators."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar('Item')
Result = TypeVar('Result')


def iter_mapping(iter_: Iterable[Item], mapping: Callable[[Item], Result]) -> Iterator[Result]:
    """
    Overview:
        Apply a function to every item, when it is asked for.
    Examples:
        ``list(iter_mapping([1, 2], lambda x: x ** 2)) == [1, 4]``
    """
    for item in iter_:
        yield mapping(item)
