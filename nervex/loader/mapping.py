"""Loaders about mappings: named entries (``dict_``), keys and values of any number (``mapping``), single items."""

from collections.abc import Callable, Mapping
from typing import Any

from nervex.loader.base import Loader
from nervex.loader.exception import DictError, MappingError, gathered, mismatch
from nervex.utils.errors import nearest


def dict_(**loaders: Any) -> Loader:
    """
    Overview:
        A new dict with one entry per keyword; each loader sees the whole value, so that entries are mostly written
        ``dict_(lr=item('lr') >> is_type(float))``. All entries that fail are reported together.
    """
    inner = {key: Loader(loader) for key, loader in loaders.items()}

    def load(value: Any) -> dict[str, Any]:
        return dict(zip(inner, gathered(((key, loader, value) for key, loader in inner.items()), DictError)))

    return Loader(load)


def mapping(key_loader: Any, value_loader: Any, type_back: bool = True) -> Loader:
    """Every key and every value goes through its loader; all that fail are reported together."""
    on_key, on_value = Loader(key_loader), Loader(value_loader)

    def load(value: Any) -> Any:
        items = _items(value)
        loaded, key_errors, value_errors = {}, [], []
        for key, item_ in items:
            try:
                new_key = on_key(key)
            except Exception as error:
                key_errors.append((key, error))
            try:
                new_value = on_value(item_)
            except Exception as error:
                value_errors.append((key, error))
            if not (key_errors or value_errors):
                loaded[new_key] = new_value
        if key_errors or value_errors:
            raise MappingError(key_errors, value_errors)
        return type(value)(loaded) if type_back else loaded

    return Loader(load, 'a mapping')


def _items(value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, Mapping):
        raise mismatch(TypeError, value, 'a mapping')
    return list(value.items())


def mpfilter(predicate: Callable[[Any, Any], bool], type_back: bool = True) -> Loader:
    """Only the entries for which ``predicate(key, value)`` is true."""

    def load(value: Any) -> Any:
        kept = {key: item_ for key, item_ in _items(value) if predicate(key, item_)}
        return type(value)(kept) if type_back else kept

    return Loader(load)


def mpkeys() -> Loader:
    """The set of keys."""
    return Loader(lambda value: {key for key, _ in _items(value)})


def mpvalues() -> Loader:
    """The set of values."""
    return Loader(lambda value: {item_ for _, item_ in _items(value)})


def mpitems() -> Loader:
    """The set of (key, value) pairs."""
    return Loader(lambda value: set(_items(value)))


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
