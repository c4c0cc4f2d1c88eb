"""``rule``: a check written in words, as it stands in the declaration of a setting."""

from __future__ import annotations

import ast
import functools
import math
import re
from typing import Any

from nervex.loader.base import Loader, checked, instance_of, keep, optional
from nervex.loader.errors import mismatch
from nervex.loader.structures import collection, mapping
from nervex.loader.values import enum, interval, is_callable, is_type, numeric
from nervex.utils.errors import UnknownNameError, nearest, unknown_name
from nervex.utils.import_helper import load_attribute


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _int(value: Any) -> int:
    if not instance_of(value, int):
        raise mismatch(TypeError, value, 'an int')
    if abs(value) > 2**53:  # what a float still counts
        raise mismatch(ValueError, value, 'an int', ', and of at most 2**53')
    return value


def _named(value: Any) -> Any:
    return load_attribute(value) if isinstance(value, str) else value


_INT = Loader(_int, 'an int')
Rule = tuple[Loader, dict[str, Any]]
#: word -> (the loader, its JSON schema)
KINDS: dict[str, Rule] = {
    'any': (keep(), {}),
    'bool': (is_type(bool), {'type': 'boolean'}),
    'callable': (Loader(Loader(_named) >> is_callable(), "callable, or its name 'module:function'"), {}),
    'class': (is_type(type), {}),
    'dict': (is_type(dict), {'type': 'object'}),
    'inf': (checked("'inf'", (str, float), lambda value: value in ('inf', math.inf)), {'const': 'inf'}),
    'int': (_INT, {'type': 'integer'}),
    'list': (checked('a list', (list, tuple), answer=list), {'type': 'array'}),
    'number': (numeric(inf_ok=False), {'type': 'number'}),
    'str': (is_type(str), {'type': 'string'}),
    'whole': (Loader(Loader(_whole) >> _INT, 'an int'), {'type': 'integer'}),  # 1e5 is one, too
}
_NUMBERS = ('int', 'number', 'whole')
_KEYWORDS = {'>=': 'minimum', '>': 'exclusiveMinimum', '<=': 'maximum', '<': 'exclusiveMaximum'}
_BOUNDS = re.compile(r'(\w+) (?:(>=|>|<=|<) (\S+)|in ([\[(])(\S+), (\S+)([\])]))')


@functools.cache
def rule(text: str) -> Loader:
    """
    Overview:
        The loader that a text describes: alternatives, separated by `` | ``. Each is a kind (``int``, ``number``,
        ``bool``, ``str``, ``list``, ``dict``, ``callable``, ``class``, ``any``; ``whole``: an int that may be written
        ``1e5``; ``inf``: an infinity), a number within bounds (``int >= 1``, ``number in (0, 1]``), a word in quotes or
        ``None`` itself, or ``list of`` / ``dict of`` such.

    Examples::

        rule("int >= 1 | None").check(0)          # False
        rule("'exp' | 'linear'").what             # "one of 'exp', 'linear'"
    """
    return _parsed(text)[0]


@functools.cache
def rule_schema(text: str) -> dict[str, Any]:
    """The same as a JSON schema."""
    return _parsed(text)[1]


def registered(registry: Any) -> Loader:
    """The name of something in a registry."""

    def known(value: str) -> str:
        if value not in registry:
            raise UnknownNameError(unknown_name(registry.what, value, registry))
        return value

    return checked(f'the name of a {registry.what}', str, answer=known)


def _parsed(text: str) -> Rule:
    found: list[Rule] = []
    words: list[Any] = []
    for part in text.split(' | '):
        try:
            words.append(ast.literal_eval(part))
        except (ValueError, SyntaxError):
            found.append(_kind(part, text))
    choices = [word for word in words if word is not None]
    if choices:  # tried last, since their error names the nearest one
        found.append((enum(*choices), {'enum': choices}))
    if not found:
        return Loader(None), {'type': 'null'}
    loader = functools.reduce(lambda first, second: first | second, (each for each, _ in found))
    if choices and text.startswith(repr(choices[0])):
        loader = Loader(loader, ' or '.join(each.what for each, _ in (found[-1], *found[:-1])))
    schemas = [schema for _, schema in found]
    if None in words:
        loader, schemas = optional(loader), [*schemas, {'type': 'null'}]
    return loader, schemas[0] if len(schemas) == 1 else {'anyOf': schemas}


def _kind(part: str, text: str) -> Rule:
    container, _, item = part.partition(' of ')
    if item and container in ('list', 'dict'):
        each, schema = _kind(item, text)
        what = f'a {container} of values that are {each.what}'
        if container == 'list':
            return Loader(KINDS['list'][0] >> collection(each), what), {'type': 'array', 'items': schema}
        return Loader(is_type(dict) >> mapping(str, each), what), {'type': 'object', 'additionalProperties': schema}
    if part in KINDS:
        return KINDS[part]
    found = _BOUNDS.fullmatch(part)
    if found is None or found[1] not in _NUMBERS:
        near = nearest(part.partition(' ')[0], KINDS)
        hint = f"; did you mean '{near}'?" if near else ''
        raise ValueError(f'rule {text!r}: {part!r} is no check{hint} Kinds: {", ".join(KINDS)}')
    kind, sign, edge, left, low, high, right = found.groups()
    signs = {sign: edge} if sign else {'>=' if left == '[' else '>': low, '<=' if right == ']' else '<': high}
    return _bounded(kind, {sign: int(float(e)) if float(e).is_integer() else float(e) for sign, e in signs.items()})


def _bounded(kind: str, limits: dict[str, float]) -> Rule:
    """A number within limits; whatever part of the rule refuses a value, the error names all of it."""
    loader, schema = KINDS[kind]
    low, high = limits.get('>=', limits.get('>')), limits.get('<=', limits.get('<'))
    if kind == 'number' and None not in (low, high):
        loader = numeric()  # what lies between bounds is finite
    loader = loader >> interval(low, high, '>' not in limits, '<' not in limits)

    def load(value: Any) -> Any:
        try:
            return loader(value)
        except (TypeError, ValueError) as error:
            raise mismatch(type(error), value, loader.what, getattr(error, 'hint', '')) from None

    return Loader(load, loader.what), {**schema, **{_KEYWORDS[sign]: edge for sign, edge in limits.items()}}
