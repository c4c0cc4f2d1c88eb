"""Loaders about lists, tuples and sets, and about mappings: whole ones, single items, parts."""

from collections.abc import Callable, Container, Iterable, Mapping, Sized
from functools import partial
from typing import Any

from nervex.loader.base import Loader, checked
from nervex.loader.errors import CollectionError, DictError, MappingError, mismatch, tried
from nervex.loader.values import interval, told
from nervex.utils.errors import nearest


# ---- lists, tuples, sets
def _collection(what: str, answer: Callable[[Any], list], type_back: bool) -> Loader:
    """What ``answer`` makes of the items, in the type that came in (list, tuple, set) if ``type_back``."""

    def load(value: Any) -> Any:
        if isinstance(value, (str, bytes)):
            raise mismatch(TypeError, value, what)
        items = answer(value)
        if type_back and hasattr(type(value), '_make'):  # a namedtuple
            return type(value)._make(items)
        return type(value)(items) if type_back and isinstance(value, (list, tuple, set, frozenset)) else items

    return checked(what, Iterable, answer=load)


def collection(loader: Any, type_back: bool = True) -> Loader:
    """
    Overview:
        Every item goes through ``loader``; all that fail are reported together, by index.
    Arguments:
        - type_back (:obj:`bool`): answer in the type that came in (list, tuple, set), else as a list
    """
    inner = Loader(loader)

    def load(value: Any) -> list:
        loaded, errors = tried((index, inner, item) for index, item in enumerate(value))
        if errors:
            raise CollectionError(errors)
        return loaded

    return _collection('a collection' + (f' of items that are {inner.what}' if inner.what else ''), load, type_back)


def cofilter(predicate: Callable[[Any], bool], type_back: bool = True) -> Loader:
    """Only the items for which ``predicate`` (a function or a loader) is true, in the type that came in."""
    return _collection('a collection', lambda value: [item for item in value if predicate(item)], type_back)


def tuple_(*loaders: Any) -> Loader:
    """A tuple (or list) with one loader per position; all that fail are reported together. Answers a tuple."""
    inner = [Loader(loader) for loader in loaders]
    what = f'a tuple of {len(inner)}'

    def load(value: Any) -> tuple:
        if len(value) != len(inner):
            raise mismatch(ValueError, value, f'{what} items, not {len(value)}')
        loaded, errors = tried(zip(range(len(inner)), inner, value))
        if errors:
            raise CollectionError(errors)
        return tuple(loaded)

    return checked(what, (tuple, list), answer=load)


def length(min: int | None = None, max: int | None = None) -> Loader:
    """The length lies between two bounds, both included; None means no bound."""
    size = interval(min, max)
    words = str(min) if min is not None and min == max else size.what.removeprefix('a number ')
    what = f'of length {words}'

    def load(value: Any) -> Any:
        if not size.check(len(value)):
            raise mismatch(ValueError, value, f'{what}, not {len(value)}')
        return value

    return Loader(checked(f'something {what}', Sized) >> load, what)


def length_is(n: int) -> Loader:
    """The length is exactly ``n``."""
    return length(min=n, max=n)


def contains(item: Any) -> Loader:
    """The collection holds ``item``."""
    return checked(f'a collection that contains {item!r}', Container, lambda value: item in value)


def tpselector(*indices: int) -> Loader:
    """These positions of a tuple, as a tuple."""
    return checked('a tuple', (tuple, list), answer=lambda value: tuple(value[index] for index in indices))


# ---- mappings
def dict_(**loaders: Any) -> Loader:
    """
    Overview:
        A new dict with one entry per keyword; each loader sees the whole value, so that entries are mostly written
        ``dict_(lr=item('lr') >> is_type(float))``. All entries that fail are reported together.
    """
    inner = {key: Loader(loader) for key, loader in loaders.items()}

    def load(value: Any) -> dict[str, Any]:
        loaded, errors = tried((key, loader, value) for key, loader in inner.items())
        if errors:
            raise DictError(errors)
        return dict(zip(inner, loaded))

    return Loader(load)


def _mapping(answer: Callable[[Any], Any], type_back: bool = False) -> Loader:
    """What ``answer`` makes of a mapping, in the type that came in if ``type_back``."""
    load = (lambda value: type(value)(answer(value))) if type_back else answer
    return checked('a mapping', Mapping, answer=load)


def mapping(key_loader: Any, value_loader: Any, type_back: bool = True) -> Loader:
    """Every key and every value goes through its loader; all that fail are reported together."""
    on_key, on_value = Loader(key_loader), Loader(value_loader)

    def load(value: Any) -> dict:
        keys, key_errors = tried((key, on_key, key) for key in value)
        values, value_errors = tried((key, on_value, value[key]) for key in value)
        if key_errors or value_errors:
            raise MappingError(key_errors, value_errors)
        return dict(zip(keys, values))

    return _mapping(load, type_back)


def mpfilter(predicate: Callable[[Any, Any], bool], type_back: bool = True) -> Loader:
    """Only the entries for which ``predicate(key, value)`` is true."""
    return _mapping(lambda value: {key: part for key, part in value.items() if predicate(key, part)}, type_back)


mpkeys = told(partial(_mapping, set), 'The set of keys.')
mpvalues = told(partial(_mapping, lambda value: set(value.values())), 'The set of values.')
mpitems = told(partial(_mapping, lambda value: set(value.items())), 'The set of (key, value) pairs.')


def item(key: Any) -> Loader:
    """``value[key]``; KeyError (IndexError for a sequence) if it is missing."""

    def load(value: Any) -> Any:
        try:
            return value[key]
        except KeyError:
            near = nearest(key, value) if isinstance(key, str) and isinstance(value, Mapping) else None
            raise KeyError(f'missing item {key!r}' + (f"; did you mean '{near}'?" if near else '')) from None

    return Loader(load)


def item_or(key: Any, default: Any) -> Loader:
    """``value[key]``, or ``default`` where it is missing."""

    def load(value: Any) -> Any:
        try:
            return value[key]
        except (KeyError, IndexError):
            return default

    return Loader(load)
