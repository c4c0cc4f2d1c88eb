"""Loaders about lists, tuples and sets."""

from collections.abc import Callable, Iterable, Sized
from typing import Any

from nervex.loader.base import Loader
from nervex.loader.exception import CollectionError, gathered, mismatch


def _typed_as(value: Any, items: list) -> Any:
    if hasattr(type(value), '_make'):  # a namedtuple
        return type(value)._make(items)
    return type(value)(items) if isinstance(value, (list, tuple, set, frozenset)) else items


def collection(loader: Any, type_back: bool = True) -> Loader:
    """
    Overview:
        Every item goes through ``loader``; all that fail are reported together, by index.
    Arguments:
        - type_back (:obj:`bool`): answer in the type that came in (list, tuple, set), else as a list
    """
    inner = Loader(loader)
    what = 'a collection' + (f' of items that are {inner.what}' if inner.what else '')

    def load(value: Any) -> Any:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise mismatch(TypeError, value, what)
        loaded = gathered(((index, inner, item) for index, item in enumerate(value)), CollectionError)
        return _typed_as(value, loaded) if type_back else loaded

    return Loader(load, what)


def tuple_(*loaders: Any) -> Loader:
    """A tuple (or list) with one loader per position; all that fail are reported together. Answers a tuple."""
    inner = [Loader(loader) for loader in loaders]
    what = f'a tuple of {len(inner)}'

    def load(value: Any) -> tuple:
        if not isinstance(value, (tuple, list)):
            raise mismatch(TypeError, value, what)
        if len(value) != len(inner):
            raise mismatch(ValueError, value, f'{what} items, not {len(value)}')
        return tuple(gathered(zip(range(len(inner)), inner, value), CollectionError))

    return Loader(load, what)


def length(min: int | None = None, max: int | None = None) -> Loader:
    """The length lies between two bounds, both included; None means no bound."""
    if min is not None and max is not None and min > max:
        raise ValueError(f'length: min {min} is above max {max}')
    parts = [f'at least {min}' if min is not None else '', f'at most {max}' if max is not None else '']
    what = 'of length ' + (str(min) if min == max and min is not None else ' and '.join(p for p in parts if p) or 'any')

    def load(value: Any) -> Any:
        if not isinstance(value, Sized):
            raise mismatch(TypeError, value, f'something {what}')
        if (min is not None and len(value) < min) or (max is not None and len(value) > max):
            raise mismatch(ValueError, value, f'{what}, not {len(value)}')
        return value

    return Loader(load, what)


def length_is(n: int) -> Loader:
    """The length is exactly ``n``."""
    return length(min=n, max=n)


def contains(item: Any) -> Loader:
    """The collection holds ``item``."""
    what = f'a collection that contains {item!r}'

    def load(value: Any) -> Any:
        if not hasattr(type(value), '__contains__'):
            raise mismatch(TypeError, value, what)
        if item not in value:
            raise mismatch(ValueError, value, what)
        return value

    return Loader(load, what)


def cofilter(predicate: Callable[[Any], bool], type_back: bool = True) -> Loader:
    """Only the items for which ``predicate`` (a function or a loader) is true, in the type that came in."""

    def load(value: Any) -> Any:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise mismatch(TypeError, value, 'a collection')
        kept = [item for item in value if predicate(item)]
        return _typed_as(value, kept) if type_back else kept

    return Loader(load)


def tpselector(*indices: int) -> Loader:
    """These positions of a tuple, as a tuple."""

    def load(value: Any) -> tuple:
        if not isinstance(value, (tuple, list)):
            raise mismatch(TypeError, value, 'a tuple')
        return tuple(value[index] for index in indices)

    return Loader(load)
