"""Loaders about types, attributes and calls; numbers; strings. An operand may be a loader of the same value."""

import math
import operator
import re
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any

from nervex.loader.base import Loader, checked, type_name
from nervex.loader.errors import mismatch, shown
from nervex.utils.errors import nearest, unknown_name


# ---- types, attributes, calls
def is_type(type_: type | tuple[type, ...]) -> Loader:
    """The value is an instance of ``type_``, or TypeError. A bool is not taken for an int."""
    if not (isinstance(type_, type) or (isinstance(type_, tuple) and all(isinstance(t, type) for t in type_))):
        raise TypeError(f'is_type: got {type_!r}, must be a type or a tuple of types')
    return checked(type_name(type_), type_)


def to_type(type_: type) -> Loader:
    """Converts by calling ``type_(value)``; its own errors pass through."""
    return Loader(lambda value: type_(value), f'convertible to {type_.__name__}')


def is_callable() -> Loader:
    """The value can be called, or TypeError."""
    return checked('callable', Callable)


def prop(name: str) -> Loader:
    """The value's attribute ``name``; AttributeError if it has none."""
    return Loader(lambda value: getattr(value, name))


def method(name: str) -> Loader:
    """The value's bound method ``name``; TypeError if it has none."""
    return Loader(
        (
            lambda value: callable(getattr(value, name, None)),
            operator.attrgetter(name),
            lambda value: TypeError(f"{type(value).__name__} {value!r} has no method '{name}'"),
        )
    )


def fcall(*args: Any, **kwargs: Any) -> Loader:
    """Calls the value with these arguments."""
    return Loader(lambda function: function(*args, **kwargs))


def fpartial(*args: Any, **kwargs: Any) -> Loader:
    """Binds these arguments to the value, which is a function."""
    return Loader(lambda function: partial(function, *args, **kwargs))


# ---- numbers
def numeric(int_ok: bool = True, float_ok: bool = True, inf_ok: bool = True) -> Loader:
    """A number: TypeError for anything else (a bool too), ValueError for NaN and, on request, for an infinity."""
    if not (int_ok or float_ok):
        raise ValueError('numeric: int_ok and float_ok are both False, so that nothing would pass')
    what = 'number' if int_ok and float_ok else 'int' if int_ok else 'float'
    what = f'a finite {what}' if not inf_ok else f'an {what}' if what == 'int' else f'a {what}'
    kinds = (int,) * int_ok + (float,) * float_ok
    return checked(what, kinds, lambda value: value == value and (inf_ok or abs(value) != math.inf))


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

    def fits(value: Any) -> bool:
        above = lo is None or (value >= lo - eps if left_ok else value > lo + eps)
        below = hi is None or (value <= hi + eps if right_ok else value < hi - eps)
        return above and below and value == value

    return checked(what, Real, fits)


def _interval_words(lo: float | None, hi: float | None, left_ok: bool, right_ok: bool) -> str:
    if lo is None and hi is None:
        return 'a number'
    if hi is None or hi == math.inf:
        return f'a number >= {lo}' if left_ok else f'a number > {lo}'
    if lo is None or lo == -math.inf:
        return f'a number <= {hi}' if right_ok else f'a number < {hi}'
    return f'a number in {"[" if left_ok else "("}{lo}, {hi}{"]" if right_ok else ")"}'


def told(made: Callable[..., Loader], text: str) -> Callable[..., Loader]:
    """A maker of loaders with what it does as its docstring."""
    made.__doc__ = text
    return made


is_positive = told(lambda: interval(0, None, left_ok=False), '> 0')
is_negative = told(lambda: interval(None, 0, right_ok=False), '< 0')
non_negative = told(lambda: interval(0, None), '>= 0')
non_positive = told(lambda: interval(None, 0), '<= 0')
positive = told(lambda: Loader(operator.pos), '``+value``')
negative = told(lambda: Loader(operator.neg), '``-value``')


def _over(function: Callable[[list], Any], *items: Any) -> Loader:
    """A function of what several loaders make of the value; an operand that is none is itself."""
    loaders = [Loader(item) for item in items]
    return Loader(lambda value: function([loader(value) for loader in loaders]))


def _with(function: Callable[[Any, Any], Any], text: str) -> Callable[[Any], Loader]:
    """A loader of one operand, which may itself be a loader of the value."""
    return told(lambda operand: _over(lambda pair: function(*pair), True, operand), f'``{text}``')


plus = _with(operator.add, 'value + operand')
minus = _with(operator.sub, 'value - operand')
minus_with = _with(lambda value, operand: operand - value, 'operand - value')
multi = _with(operator.mul, 'value * operand')
divide = _with(operator.truediv, 'value / operand')
divide_with = _with(lambda value, operand: operand / value, 'operand / value')
power = _with(operator.pow, 'value ** operand')
power_with = _with(lambda value, operand: operand**value, 'operand ** value')
msum = told(partial(_over, sum), 'The sum of what several loaders make of the value.')
mmulti = told(partial(_over, math.prod), 'The product of what several loaders make of the value.')


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    '<': operator.lt,
    '<=': operator.le,
    '>': operator.gt,
    '>=': operator.ge,
    '==': operator.eq,
    '!=': operator.ne,
}


def comparison_chain(first: Any, rest: tuple) -> tuple[Callable[[Sequence], bool], list[str], list[Any]]:
    """``a, '<', b, '<=', c``: whether the chain holds for the operands' values; the signs; the operands."""
    if len(rest) % 2:
        raise ValueError(f'a comparison chain ends with an operand, got the sign {rest[-1]!r}')
    signs = list(rest[::2])
    for sign in signs:
        if sign not in COMPARISONS:
            raise KeyError(unknown_name('comparison', sign, COMPARISONS))

    def holds(values: Sequence) -> bool:
        return all(COMPARISONS[sign](left, right) for sign, left, right in zip(signs, values, values[1:]))

    return holds, signs, [first, *rest[1::2]]


def mcmp(first: Any, *rest: Any) -> Loader:
    """
    Overview:
        A chain such as ``mcmp(0, '<', item('lo'), '<=', item('hi'))``: answers the value unchanged where every link
        holds, else ValueError.
    """
    holds, signs, operands = comparison_chain(first, rest)
    loaders = [Loader(item) for item in operands]

    def load(value: Any) -> Any:
        got = [loader(value) for loader in loaders]
        if not holds(got):
            chain = shown(got[0]) + ''.join(f' {s} {shown(g)}' for s, g in zip(signs, got[1:]))
            raise ValueError(f'{chain} does not hold')
        return value

    return Loader(load)


# ---- strings
def enum(*items: Any, case_sensitive: bool = True) -> Loader:
    """
    Overview:
        One of ``items``, mostly strings, else ValueError. Without ``case_sensitive`` the answer is the item as it is
        written here. True and False are not taken for 1 and 0.
    """

    def key_of(item: Any) -> Any:
        return item.lower() if isinstance(item, str) and not case_sensitive else (isinstance(item, bool), item)

    allowed = {key_of(item): item for item in items}
    what = ('one of ' if len(items) > 1 else '') + ', '.join(repr(item) for item in items)

    def load(value: Any) -> Any:
        try:
            return allowed[key_of(value)]
        except (KeyError, TypeError):  # a list, say, cannot be looked up
            near = nearest(value, items) if isinstance(value, str) else None
            raise mismatch(ValueError, value, what, f"; did you mean '{near}'?" if near else '') from None

    return Loader(load, what)


def _pattern(regexp: str | re.Pattern) -> re.Pattern:
    if not isinstance(regexp, (str, re.Pattern)):
        raise TypeError(f'got {regexp!r}, must be a regular expression: a str or a compiled pattern')
    return re.compile(regexp)


def rematch(regexp: str | re.Pattern) -> Loader:
    """The whole string matches; answers it unchanged."""
    pattern = _pattern(regexp)
    return checked(f'a str that matches {pattern.pattern!r}', str, lambda value: bool(pattern.fullmatch(value)))


def regrep(regexp: str | re.Pattern, group: int | str = 0) -> Loader:
    """The first match inside the string: that group of it."""
    pattern = _pattern(regexp)

    def load(value: str) -> str:
        if not (found := pattern.search(value)):
            raise mismatch(ValueError, value, what)
        return found.group(group)

    what = f'a str that contains {pattern.pattern!r}'
    return checked(what, str, answer=load)
