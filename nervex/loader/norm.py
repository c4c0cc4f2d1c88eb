"""``norm``: arithmetic and comparisons written as ordinary expressions over loaders of one value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from nervex.loader.base import Loader
from nervex.loader.number import COMPARISONS, comparison_chain


class Norm:
    """
    Overview:
        A function of a value that supports all operators: ``norm(item('a')) + norm(item('b')) == norm(item('sum'))`` is
        again a Norm; calling it with a value gives the result. A plain operand stands for itself, a loader for its
        answer.
        ``Loader(a_norm)`` turns it back into a loader.
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

    def lifted(*items: Any) -> Norm:
        operands = [_operand(item) for item in items]
        return Norm(lambda value: function(*(operand(value) for operand in operands)))

    return lifted


ARITHMETIC = ('add', 'sub', 'mul', 'matmul', 'truediv', 'floordiv', 'mod', 'pow')
BITS = ('lshift', 'rshift', 'and', 'or', 'xor')


def _install_operators() -> None:
    def forward(function: Callable) -> Callable:
        return lambda self, other: normfunc(function)(self, other)

    def backward(function: Callable) -> Callable:
        return lambda self, other: normfunc(function)(other, self)

    for name in (*ARITHMETIC, *BITS):
        function = getattr(operator, f'__{name}__')
        setattr(Norm, f'__{name}__', forward(function))
        setattr(Norm, f'__r{name}__', backward(function))
    for name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge'):
        setattr(Norm, f'__{name}__', forward(getattr(operator, name)))
    for name in ('neg', 'pos', 'invert'):
        setattr(Norm, f'__{name}__', normfunc(getattr(operator, name)))


_install_operators()


def norm(loader: Any) -> Norm:
    """The value after ``loader``, as a term of an expression."""
    return Norm(Loader(loader))


def lnot(term: Any) -> Norm:
    """``not term``"""
    return normfunc(operator.not_)(term)


def land(*terms: Any) -> Norm:
    """The first false term, else the last one, as ``and`` does; later terms are not evaluated."""
    return _shortcut(terms, stop_at=False)


def lor(*terms: Any) -> Norm:
    """The first true term, else the last one, as ``or`` does; later terms are not evaluated."""
    return _shortcut(terms, stop_at=True)


def _shortcut(terms: tuple, stop_at: bool) -> Norm:
    if not terms:
        raise ValueError('land and lor need at least one term')
    operands = [_operand(term) for term in terms]

    def run(value: Any) -> Any:
        result = None
        for operand in operands:
            result = operand(value)
            if bool(result) is stop_at:
                break
        return result

    return Norm(run)


def lin(container: Any, element: Any) -> Norm:
    """``element in container``"""
    return normfunc(operator.contains)(container, element)


def lis(first: Any, second: Any) -> Norm:
    """``first is second``"""
    return normfunc(operator.is_)(first, second)


def lisnot(first: Any, second: Any) -> Norm:
    """``first is not second``"""
    return normfunc(operator.is_not)(first, second)


def lsum(*terms: Any) -> Norm:
    """The sum of all terms."""
    return normfunc(lambda *values: sum(values))(*terms)


def lcmp(first: Any, *rest: Any) -> Norm:
    """A chain such as ``lcmp(0, '<', norm(item('a')), '<=', 1)``; the answer is True or False."""
    signs, terms = comparison_chain(first, rest)

    def run(*values: Any) -> bool:
        return all(COMPARISONS[sign](left, right) for sign, left, right in zip(signs, values, values[1:]))

    return normfunc(run)(*terms)
