"""``rule``: a check written in words, as it stands in the declaration of a setting."""

from __future__ import annotations

import ast
import functools
import math
import re
from typing import Any

from nervex.loader.base import Loader, instance_of
from nervex.loader.collection import collection
from nervex.loader.exception import mismatch
from nervex.loader.mapping import mapping
from nervex.loader.number import interval, numeric
from nervex.loader.string import enum
from nervex.loader.types import is_type
from nervex.loader.utils import keep, optional
from nervex.utils.errors import UnknownNameError, nearest, unknown_name
from nervex.utils.import_helper import load_attribute


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not instance_of(value, int):
        raise mismatch(TypeError, value, 'an int')
    return value


def _callable(value: Any) -> Any:
    if isinstance(value, str):
        value = load_attribute(value)
    if not callable(value):
        raise mismatch(TypeError, value, 'callable')
    return value


def _list(value: Any) -> list:
    if not isinstance(value, (list, tuple)):
        raise mismatch(TypeError, value, 'a list')
    return list(value)


def _infinity(value: Any) -> Any:
    if value == 'inf':
        return value
    if not (isinstance(value, float) and value == math.inf):
        raise mismatch(ValueError, value, "'inf'")
    return value


#: word -> (the loader, its JSON schema)
KINDS: dict[str, tuple[Loader, dict[str, Any]]] = {
    'any': (keep(), {}),
    'bool': (is_type(bool), {'type': 'boolean'}),
    'callable': (Loader(_callable, "callable, or its name 'module:function'"), {}),
    'class': (is_type(type), {}),
    'dict': (is_type(dict), {'type': 'object'}),
    'inf': (Loader(_infinity, "'inf'"), {'const': 'inf'}),
    'int': (is_type(int), {'type': 'integer'}),
    'list': (Loader(_list, 'a list'), {'type': 'array'}),
    'number': (numeric(inf_ok=False), {'type': 'number'}),
    'str': (is_type(str), {'type': 'string'}),
    'whole': (Loader(_whole, 'an int'), {'type': 'integer'}),  # 1e5 is one, too
}
_NUMBERS = ('int', 'number', 'whole')
_KEYWORDS = {'>=': 'minimum', '>': 'exclusiveMinimum', '<=': 'maximum', '<': 'exclusiveMaximum'}
_RULE = re.compile(r'(\w+)(?: (>=|>|<=|<) (\S+)| in ([\[(])(\S+), (\S+)([\])]))?')


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

    def load(value: Any) -> Any:
        if not isinstance(value, str):
            raise mismatch(TypeError, value, what)
        if value not in registry:
            raise UnknownNameError(unknown_name(registry.what, value, registry))
        return value

    what = f'the name of a {registry.what}'
    return Loader(load, what)


def _parsed(text: str) -> tuple[Loader, dict[str, Any]]:
    found: list[tuple[Loader, dict[str, Any]]] = []
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


def _kind(part: str, text: str) -> tuple[Loader, dict[str, Any]]:
    container, _, item = part.partition(' of ')
    if item and container in ('list', 'dict'):
        each, schema = _kind(item, text)
        what = f'a {container} of values that are {each.what}'
        if container == 'list':
            return Loader(Loader(_list) >> collection(each), what), {'type': 'array', 'items': schema}
        return Loader(is_type(dict) >> mapping(str, each), what), {'type': 'object', 'additionalProperties': schema}
    found = _RULE.fullmatch(part)
    if found is None or found[1] not in KINDS or (found[0] != found[1] and found[1] not in _NUMBERS):
        near = nearest(part.partition(' ')[0], KINDS)
        hint = f"; did you mean '{near}'?" if near else ''
        raise ValueError(f'rule {text!r}: {part!r} is no check{hint} Kinds: {", ".join(KINDS)}')
    loader, schema = KINDS[found[1]]
    if found[0] == found[1]:
        return loader, schema
    signs = [(found[2], found[3])] if found[2] else [('>' + '=' * (found[4] == '['), found[5])]
    signs += [] if found[2] else [('<' + '=' * (found[7] == ']'), found[6])]
    limits = {sign: int(float(edge)) if float(edge).is_integer() else float(edge) for sign, edge in signs}
    low, high = limits.get('>=', limits.get('>')), limits.get('<=', limits.get('<'))
    if found[1] == 'number' and None not in (low, high):
        loader = numeric()  # what lies between bounds is finite
    return (
        _in_one_word(loader >> interval(low, high, '>' not in limits, '<' not in limits)),
        {**schema, **{_KEYWORDS[sign]: edge for sign, edge in limits.items()}},
    )


def _in_one_word(loader: Loader) -> Loader:
    """The same; whatever part of it refuses a value, the error names all of the rule."""

    def load(value: Any) -> Any:
        try:
            return loader(value)
        except (TypeError, ValueError) as error:
            raise mismatch(type(error), value, loader.what) from None

    return Loader(load, loader.what)
