"""``Loader``: a check or a conversion of one value, and the operators that combine them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nervex.loader.errors import CompositeStructureError, mismatch

_TYPE_NAMES = {int: 'an int', type(None): 'None'}


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
        load (as a call), check, what (the rule in words, as it stands behind "must be")
    """

    __slots__ = ('load', 'what')

    def __init__(self, source: Any, what: str | None = None) -> None:
        load, words = _lift(source)
        self.load: Callable[[Any], Any] = load
        self.what: str = words if what is None else what

    def __call__(self, value: Any) -> Any:
        return self.load(value)

    def check(self, value: Any) -> bool:
        """Whether ``load`` would accept the value."""
        try:
            self.load(value)
        except Exception:
            return False
        return True

    def __rshift__(self, other: Any) -> Loader:
        first, second = self.load, Loader(other)
        return Loader(lambda value: second.load(first(value)), _words(' ', self, second))

    def __and__(self, other: Any) -> Loader:
        first, second = self.load, Loader(other)
        return Loader(lambda value: (first(value), second.load(value))[1], _words(' ', self, second))

    def __or__(self, other: Any) -> Loader:
        first, second = self.load, Loader(other)
        what = _words(' or ', self, second)

        def either(value: Any) -> Any:
            try:
                return first(value)
            except Exception as error:
                try:
                    return second.load(value)
                except (TypeError, ValueError) as last:  # it tells the kind; the text names all alternatives
                    if (
                        not what
                        or isinstance(last, CompositeStructureError)
                        or type(last) not in (TypeError, ValueError)
                    ):
                        raise
                    raise mismatch(type(last), value, what, getattr(last, 'hint', '')) from error

        return Loader(either, what)

    def __rrshift__(self, other: Any) -> Loader:
        return Loader(other) >> self

    def __rand__(self, other: Any) -> Loader:
        return Loader(other) & self

    def __ror__(self, other: Any) -> Loader:
        return Loader(other) | self

    def __repr__(self) -> str:
        return f'Loader({self.what or "..."})'


def checked(
    what: str,
    types: Any = object,
    fits: Callable[[Any], bool] = lambda value: True,
    answer: Callable[[Any], Any] | None = None,
) -> Loader:
    """
    Overview:
        The pattern of most loaders: TypeError for a value of another type (see ``instance_of``), ValueError for one
        that does not fit, else the value, or what ``answer`` makes of it.
    """

    def load(value: Any) -> Any:
        if not instance_of(value, types):
            raise mismatch(TypeError, value, what)
        if not fits(value):
            raise mismatch(ValueError, value, what)
        return value if answer is None else answer(value)

    return Loader(load, what)


def type_name(types: type | tuple[type, ...]) -> str:
    """A type in words: ``an int``, ``a str or a list``."""
    if isinstance(types, tuple):
        return ' or '.join(type_name(t) for t in types)
    known = types.__module__ == 'builtins' and types is not object
    return _TYPE_NAMES.get(types, f'a {types.__name__}' if known else f'an instance of {types.__name__}')


def instance_of(value: Any, types: Any) -> bool:
    """``isinstance`` that does not take a bool for an int."""
    if isinstance(value, bool):
        wanted = types if isinstance(types, tuple) else (types,)
        return bool in wanted or object in wanted
    return isinstance(value, types)


def _lift(source: Any) -> tuple[Callable[[Any], Any], str]:
    """What a plain Python object means as a loader: its function, and its rule in words."""
    if source is None:
        source = type(None)
    if isinstance(source, type):
        source = checked(type_name(source), source)
    if isinstance(source, Loader):
        return source.load, source.what
    if source is True:
        return (lambda value: value), ''
    if source is False:
        source = (lambda value: False, lambda value: f'got {value!r}, and no value is accepted here')
    if isinstance(source, tuple):
        return _predicate(*source), ''
    return source if callable(source) else lambda value: source, ''


def _predicate(*parts: Any) -> Callable[[Any], Any]:
    if len(parts) not in (2, 3):
        raise ValueError(f'a loader from a tuple has 2 parts (predicate, error) or 3, got {len(parts)}')
    predicate, error = parts[0], parts[-1]

    def load(value: Any) -> Any:
        if predicate(value):
            return parts[1](value) if len(parts) == 3 else value
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


def keep() -> Loader:
    """Accepts anything and answers it unchanged."""
    return Loader(True)


def raw(value: Any) -> Loader:
    """Answers ``value``, whatever it is given; as the last alternative, a default."""
    return Loader(lambda _: value)


def optional(loader: Any) -> Loader:
    """None passes; anything else goes through ``loader``."""
    inner = Loader(loader)
    what = f'{inner.what} or None' if inner.what else ''
    return Loader(lambda value: None if value is None else inner(value), what)


def check_only(loader: Any) -> Loader:
    """Raises as ``loader`` does, but answers the original value."""
    return Loader(loader) & keep()


def check(loader: Any) -> Loader:
    """Answers True or False: whether ``loader`` accepts the value."""
    return Loader(Loader(loader).check)
