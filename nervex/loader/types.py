"""Loaders about types, attributes and calls."""

from functools import partial
from typing import Any

from nervex.loader.base import Loader, instance_of, type_name
from nervex.loader.exception import mismatch


def is_type(type_: type | tuple[type, ...]) -> Loader:
    """The value is an instance of ``type_``, or TypeError. A bool is not taken for an int."""
    if not (isinstance(type_, type) or (isinstance(type_, tuple) and all(isinstance(t, type) for t in type_))):
        raise TypeError(f'is_type: got {type_!r}, must be a type or a tuple of types')
    what = type_name(type_)

    def load(value: Any) -> Any:
        if not instance_of(value, type_):
            raise mismatch(TypeError, value, what)
        return value

    return Loader(load, what)


def to_type(type_: type) -> Loader:
    """Converts by calling ``type_(value)``; its own errors pass through."""
    if not isinstance(type_, type):
        raise TypeError(f'to_type: got {type_!r}, must be a type')
    return Loader(lambda value: type_(value), f'convertible to {type_.__name__}')


def is_callable() -> Loader:
    """The value can be called, or TypeError."""
    return Loader((callable, lambda value: mismatch(TypeError, value, 'callable')), 'callable')


def prop(name: str) -> Loader:
    """The value's attribute ``name``; AttributeError if it has none."""

    def load(value: Any) -> Any:
        try:
            return getattr(value, name)
        except AttributeError:
            raise AttributeError(f"{type(value).__name__} {value!r} has no attribute '{name}'") from None

    return Loader(load)


def method(name: str) -> Loader:
    """The value's bound method ``name``; TypeError if it has none."""

    def load(value: Any) -> Any:
        found = getattr(value, name, None)
        if not callable(found):
            raise TypeError(f"{type(value).__name__} {value!r} has no method '{name}'")
        return found

    return Loader(load)


def fcall(*args: Any, **kwargs: Any) -> Loader:
    """Calls the value with these arguments."""
    return Loader(lambda function: function(*args, **kwargs))


def fpartial(*args: Any, **kwargs: Any) -> Loader:
    """Binds these arguments to the value, which is a function."""
    return Loader(lambda function: partial(function, *args, **kwargs))
