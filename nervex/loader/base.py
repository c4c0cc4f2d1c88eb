"""``Loader``: a check or a conversion of one value, and the operators that combine them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nervex.loader.exception import CompositeStructureError, mismatch

_TYPE_NAMES = {
    bool: 'a bool',
    int: 'an int',
    float: 'a float',
    str: 'a str',
    list: 'a list',
    tuple: 'a tuple',
    dict: 'a dict',
    set: 'a set',
    type(None): 'None',
}


class Loader:
    """
    Overview:
        A callable ``loader(value) -> new value`` that raises where the value does not fit: TypeError for a wrong type,
        ValueError for a wrong value, KeyError for a missing item. ``a >> b`` pipes, ``a & b`` needs both (and answers
        what b makes of the value), ``a | b`` takes the first that accepts.
    Arguments:
        - source: what becomes a loader: a type (instance check; a bool is not an int), a function, None (only None
          passes), True / False (everything / nothing passes), ``(predicate, error)`` or
          ``(predicate, function, error)``, where an error is a text, an exception or a function of the value; any
          other value is a constant answer
    Interfaces:
        load, check, what (the rule in words, as it stands behind "must be")
    """

    __slots__ = ('_load', 'what')

    def __init__(self, source: Any, what: str | None = None) -> None:
        load, words = _lift(source)
        self._load: Callable[[Any], Any] = load
        self.what: str = words if what is None else what

    def load(self, value: Any) -> Any:
        """The value after this loader; raises where it does not fit."""
        return self._load(value)

    def __call__(self, value: Any) -> Any:
        return self._load(value)

    def check(self, value: Any) -> bool:
        """Whether ``load`` would accept the value."""
        try:
            self._load(value)
        except Exception:
            return False
        return True

    def __rshift__(self, other: Any) -> Loader:
        first, second = self._load, Loader(other)
        return Loader(lambda value: second._load(first(value)), _words(' ', self, second))

    def __and__(self, other: Any) -> Loader:
        first, second = self._load, Loader(other)

        def both(value: Any) -> Any:
            first(value)
            return second._load(value)

        return Loader(both, _words(' ', self, second))

    def __or__(self, other: Any) -> Loader:
        first, second = self._load, Loader(other)
        what = _words(' or ', self, second)

        def either(value: Any) -> Any:
            try:
                return first(value)
            except Exception as error:
                try:
                    return second._load(value)
                except Exception as last:
                    raise _alternatives_error(value, what, last) from error

        return Loader(either, what)

    def __rrshift__(self, other: Any) -> Loader:
        return Loader(other) >> self

    def __rand__(self, other: Any) -> Loader:
        return Loader(other) & self

    def __ror__(self, other: Any) -> Loader:
        return Loader(other) | self

    def __repr__(self) -> str:
        return f'Loader({self.what or "..."})'


def type_name(types: type | tuple[type, ...]) -> str:
    """A type in words: ``an int``, ``a str or a list``."""
    if isinstance(types, tuple):
        return ' or '.join(type_name(t) for t in types)
    return _TYPE_NAMES.get(types, f'an instance of {types.__name__}')


def instance_of(value: Any, types: type | tuple[type, ...]) -> bool:
    """``isinstance`` that does not take a bool for an int."""
    if isinstance(value, bool):
        wanted = types if isinstance(types, tuple) else (types,)
        return bool in wanted or object in wanted
    return isinstance(value, types)


def _lift(source: Any) -> tuple[Callable[[Any], Any], str]:
    """What a plain Python object means as a loader: its function, and its rule in words."""
    if isinstance(source, Loader):
        return source._load, source.what
    if isinstance(source, bool):
        return (_anything, '') if source else (_nothing, 'never given')
    if source is None:
        return _type_check(type(None))
    if isinstance(source, type):
        return _type_check(source)
    if isinstance(source, tuple):
        return _predicate(source), ''
    if callable(source):
        return source, ''
    return (lambda value: source), ''


def _anything(value: Any) -> Any:
    return value


def _nothing(value: Any) -> Any:
    raise ValueError(f'got {value!r}, and no value is accepted here')


def _type_check(wanted: type) -> tuple[Callable[[Any], Any], str]:
    what = type_name(wanted)

    def load(value: Any) -> Any:
        if not instance_of(value, wanted):
            raise mismatch(TypeError, value, what)
        return value

    return load, what


def _predicate(parts: tuple) -> Callable[[Any], Any]:
    if len(parts) not in (2, 3):
        raise ValueError(f'a loader from a tuple has 2 parts (predicate, error) or 3, got {len(parts)}')
    predicate, error, convert = parts[0], parts[-1], parts[1] if len(parts) == 3 else _anything

    def load(value: Any) -> Any:
        if predicate(value):
            return convert(value)
        raised = error(value) if callable(error) and not isinstance(error, BaseException) else error
        raise raised if isinstance(raised, BaseException) else ValueError(str(raised))

    return load


def _words(joint: str, first: Loader, second: Loader) -> str:
    if joint == ' or ' and not (first.what and second.what):
        return ''  # half an alternative would be a lie
    rest = second.what
    if joint == ' ' and first.what in ('an int', 'a float', 'a number', 'a finite number'):
        rest = rest.removeprefix('a number ')  # 'an int' and 'a number > 0' make 'an int > 0'
    return joint.join(words for words in (first.what, rest) if words)


def _alternatives_error(value: Any, what: str, last: Exception) -> Exception:
    """The last alternative's error tells the kind; its text names all alternatives where these are known in words."""
    if not what or isinstance(last, CompositeStructureError) or type(last) not in (TypeError, ValueError):
        return last
    return mismatch(type(last), value, what, getattr(last, 'hint', ''))
