"""Loaders about numbers: checks, arithmetic, comparison chains. An operand may be a loader of the same value."""

import math
import operator
from collections.abc import Callable
from typing import Any

from nervex.loader.base import Loader
from nervex.loader.exception import mismatch, shown
from nervex.utils.errors import unknown_name

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    '<': operator.lt,
    '<=': operator.le,
    '>': operator.gt,
    '>=': operator.ge,
    '==': operator.eq,
    '!=': operator.ne,
}


def numeric(int_ok: bool = True, float_ok: bool = True, inf_ok: bool = True) -> Loader:
    """A number: TypeError for anything else (a bool too), ValueError for NaN and, on request, for an infinity."""
    if not (int_ok or float_ok):
        raise ValueError('numeric: int_ok and float_ok are both False, so that nothing would pass')
    what = 'number' if int_ok and float_ok else 'int' if int_ok else 'float'
    what = f'a finite {what}' if not inf_ok else f'an {what}' if what == 'int' else f'a {what}'

    def load(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise mismatch(TypeError, value, what)
        if math.isnan(value):
            raise mismatch(ValueError, value, what)
        if (isinstance(value, int) and not int_ok) or (isinstance(value, float) and not float_ok):
            raise mismatch(TypeError, value, what)
        if math.isinf(value) and not inf_ok:
            raise mismatch(ValueError, value, what)
        return value

    return Loader(load, what)


def interval(
    lo: float | None = None, hi: float | None = None, left_ok: bool = True, right_ok: bool = True, eps: float = 0.0
) -> Loader:
    """
    Overview:
        A number between two bounds.
    Arguments:
        - lo, hi (:obj:`float | None`): the bounds; None means no bound on that side
        - left_ok, right_ok (:obj:`bool`): whether the bound itself is inside
        - eps (:obj:`float`): tolerance of the comparison: an included bound reaches out by eps, an excluded one
          cuts eps off
    """
    if lo is not None and hi is not None and lo > hi:
        raise ValueError(f'interval: lo {lo} is above hi {hi}')
    if eps < 0:
        raise ValueError(f'interval: got eps {eps}, must be >= 0')
    what = _interval_words(lo, hi, left_ok, right_ok)

    def load(value: Any) -> Any:
        if isinstance(value, bool):
            raise mismatch(TypeError, value, what)
        try:
            above = lo is None or (value >= lo - eps if left_ok else value > lo + eps)
            below = hi is None or (value <= hi + eps if right_ok else value < hi - eps)
        except TypeError:
            raise mismatch(TypeError, value, what) from None
        if not (above and below) or value != value:
            raise mismatch(ValueError, value, what)
        return value

    return Loader(load, what)


def _interval_words(lo: float | None, hi: float | None, left_ok: bool, right_ok: bool) -> str:
    if lo is None and hi is None:
        return 'a number'
    if hi is None or hi == math.inf:
        return f'a number >= {lo}' if left_ok else f'a number > {lo}'
    if lo is None or lo == -math.inf:
        return f'a number <= {hi}' if right_ok else f'a number < {hi}'
    return f'a number in {"[" if left_ok else "("}{lo}, {hi}{"]" if right_ok else ")"}'


def is_positive() -> Loader:
    """> 0"""
    return interval(0, None, left_ok=False)


def is_negative() -> Loader:
    """< 0"""
    return interval(None, 0, right_ok=False)


def non_negative() -> Loader:
    """>= 0"""
    return interval(0, None)


def non_positive() -> Loader:
    """<= 0"""
    return interval(None, 0)


def positive() -> Loader:
    """``+value``"""
    return Loader(operator.pos)


def negative() -> Loader:
    """``-value``"""
    return Loader(operator.neg)


def _with(function: Callable[[Any, Any], Any], text: str) -> Callable[[Any], Loader]:
    """A loader of one operand, which may itself be a loader of the value."""

    def made(operand: Any) -> Loader:
        other = Loader(operand)
        return Loader(lambda value: function(value, other(value)))

    made.__doc__ = f'``{text}``'
    return made


plus = _with(operator.add, 'value + operand')
minus = _with(operator.sub, 'value - operand')
minus_with = _with(lambda value, operand: operand - value, 'operand - value')
multi = _with(operator.mul, 'value * operand')
divide = _with(operator.truediv, 'value / operand')
divide_with = _with(lambda value, operand: operand / value, 'operand / value')
power = _with(operator.pow, 'value ** operand')
power_with = _with(lambda value, operand: operand**value, 'operand ** value')


def msum(*items: Any) -> Loader:
    """The sum of what several loaders make of the value."""
    loaders = [Loader(item) for item in items]
    return Loader(lambda value: sum(loader(value) for loader in loaders))


def mmulti(*items: Any) -> Loader:
    """The product of what several loaders make of the value."""
    loaders = [Loader(item) for item in items]
    return Loader(lambda value: math.prod(loader(value) for loader in loaders))


def comparison_chain(first: Any, rest: tuple) -> tuple[list[str], list[Any]]:
    """Split ``a, '<', b, '<=', c`` into the signs and the operands."""
    if len(rest) % 2:
        raise ValueError(f'a comparison chain ends with an operand, got the sign {rest[-1]!r}')
    signs, operands = list(rest[::2]), [first, *rest[1::2]]
    for sign in signs:
        if sign not in COMPARISONS:
            raise KeyError(unknown_name('comparison', sign, COMPARISONS))
    return signs, operands


def mcmp(first: Any, *rest: Any) -> Loader:
    """
    Overview:
        A chain such as ``mcmp(0, '<', item('lo'), '<=', item('hi'))``: answers the value unchanged where every link
        holds, else ValueError.
    """
    signs, operands = comparison_chain(first, rest)
    loaders = [Loader(item) for item in operands]

    def load(value: Any) -> Any:
        got = [loader(value) for loader in loaders]
        for sign, left, right in zip(signs, got, got[1:]):
            if not COMPARISONS[sign](left, right):
                chain = shown(got[0]) + ''.join(f' {s} {shown(g)}' for s, g in zip(signs, got[1:]))
                raise ValueError(f'{chain} does not hold')
        return value

    return Loader(load)
