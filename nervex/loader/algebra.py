"""``norm``: arithmetic and comparisons written as ordinary expressions over loaders of one value."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from nervex.loader.base import Loader
from nervex.loader.values import comparison_chain


class Norm:
    """
    Overview:
        A function of a value that supports all operators: ``norm(item('a')) + norm(item('b')) == norm(item('sum'))`` is
        again a Norm; calling it with a value gives the result. A plain operand stands for itself, a loader for its
        answer. ``Loader(a_norm)`` turns it back into a loader.
    """

    __slots__ = ('_function',)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, value: Any) -> Any:
        return self._function(value)


def _operand(item: Any) -> Callable[[Any], Any]:
    return item if isinstance(item, (Norm, Loader)) else lambda value: item


def normfunc(function: Callable[..., Any]) -> Callable[..., Norm]:
    """Lift a function of values to a function of norms: ``normfunc(max)(norm(item('a')), 3)``."""

    @functools.wraps(function)
    def lifted(*items: Any) -> Norm:
        operands = [_operand(item) for item in items]
        return Norm(lambda value: function(*(operand(value) for operand in operands)))

    return lifted


def _reversed(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda first, second: function(second, first)


_BINARY = ('add', 'sub', 'mul', 'matmul', 'truediv', 'floordiv', 'mod', 'pow', 'lshift', 'rshift', 'and', 'or', 'xor')
for _name in _BINARY:
    _function = getattr(operator, f'__{_name}__')
    setattr(Norm, f'__{_name}__', normfunc(_function))
    setattr(Norm, f'__r{_name}__', normfunc(_reversed(_function)))
for _name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge', 'neg', 'pos', 'invert'):
    setattr(Norm, f'__{_name}__', normfunc(getattr(operator, _name)))


def norm(loader: Any) -> Norm:
    """The value after ``loader``, as a term of an expression."""
    return Norm(Loader(loader))


def land(*terms: Any) -> Norm:
    """The first false term, else the last one, as ``and`` does; later terms are not evaluated."""
    return _shortcut(terms, stop_at=False)


def lor(*terms: Any) -> Norm:
    """The first true term, else the last one, as ``or`` does; later terms are not evaluated."""
    return _shortcut(terms, stop_at=True)


def _shortcut(terms: tuple, stop_at: bool) -> Norm:
    if not terms:
        raise ValueError('land and lor need at least one term')
    *operands, last = [_operand(term) for term in terms]

    def run(value: Any) -> Any:
        for operand in operands:
            if bool(result := operand(value)) is stop_at:
                return result
        return last(value)

    return Norm(run)


def lsum(*terms: Any) -> Norm:
    """The sum of all terms."""
    return normfunc(lambda *values: sum(values))(*terms)


def lcmp(first: Any, *rest: Any) -> Norm:
    """A chain such as ``lcmp(0, '<', norm(item('a')), '<=', 1)``; the answer is True or False."""
    holds, _, terms = comparison_chain(first, rest)
    return normfunc(lambda *values: holds(values))(*terms)


lnot = normfunc(operator.not_)
lin = normfunc(operator.contains)  # lin(container, element)
lis = normfunc(operator.is_)
lisnot = normfunc(operator.is_not)
