"""Defaults and a user's settings merged key by key, and each setting checked on the way."""

from __future__ import annotations

import difflib
import logging
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nervex.config.problems import Problems
from nervex.config.tree import plain_copy
from nervex.loader import Loader
from nervex.loader.base import instance_of, type_name
from nervex.utils.class_config import declared_config, merge_config

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Declared:
    """
    Overview:
        What one section may contain.
    Arguments:
        - owner (:obj:`str`): the class that declares it, for messages
        - defaults (:obj:`dict`): every setting with its default
        - rules (:obj:`dict`): same nesting, loaders as leaves; a rule replaces the check by the default's type
        - is_open (:obj:`bool`): settings that are not declared are accepted
        - is_closed (:obj:`bool`): they are refused even if nothing at all is declared; a nested ``{}`` default is open
          unless its rule is ``{}``, too
        - parts (:obj:`dict[str, Declared]`): nested dicts that another class declares
    """

    owner: str
    defaults: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, Any] = field(default_factory=dict)
    is_open: bool = False
    is_closed: bool = False
    parts: dict[str, Declared] = field(default_factory=dict)

    def under(self, key: str) -> Declared:
        """The declaration of a nested dict, with its rules."""
        if key in self.parts:
            return self.parts[key]
        defaults, rules = self.defaults.get(key), self.rules.get(key)
        return Declared(
            self.owner,
            defaults if isinstance(defaults, dict) else {},
            rules if isinstance(rules, dict) else {},
            self.is_open,
            isinstance(rules, dict),
        )


def declared_by(cls: Any, own_only: bool = True) -> Declared:
    """
    Overview:
        The declaration of a class: ``config`` and ``config_rules`` of it and its bases.
    Arguments:
        - own_only (:obj:`bool`): a class that writes no ``config`` of its own keeps its section open, since its author
          may read any setting; if False, what its bases write closes it
    """
    if not isinstance(cls, type):
        return Declared(getattr(cls, '__name__', str(cls)), plain_copy(getattr(cls, 'config', {})), is_open=True)
    rules: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        _merge_rules(rules, vars(base).get('config_rules') or {})
    writers = (cls,) if own_only else cls.__mro__
    is_open = not any('config' in vars(writer) for writer in writers)
    return Declared(cls.__name__, declared_config(cls), rules, is_open)


def _merge_rules(old: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, rule in new.items():
        if isinstance(rule, Mapping) and isinstance(old.get(key), dict):
            _merge_rules(old[key], rule)
        else:
            old[key] = plain_copy(rule)


def merge_section(path: str, declared: Declared, given: Any, problems: Problems) -> dict[str, Any]:
    """
    Overview:
        The settings of one section (or nested dict): defaults, with what was given on top. dict on dict merges, a list
        replaces, None is a value, and a dict whose ``type`` differs from the default's replaces it.
    """
    if not isinstance(given, Mapping):
        problems.add(path, f'got {given!r}, must be a dict' + (' (write {} for an empty one)' if given is None else ''))
        return plain_copy(declared.defaults)
    defaults = declared.defaults
    other_type = 'type' in defaults and 'type' in given and defaults['type'] != given['type']
    undeclared = not declared.rules and not declared.is_closed and (other_type or not defaults)
    is_open = declared.is_open or undeclared
    known = {**defaults, **declared.rules}
    merged: dict[str, Any] = {}
    for key, default in defaults.items():
        if key in given:
            merged[key] = _merge_value(f'{path}.{key}', key, declared, given[key], problems, other_type)
        elif not other_type:
            merged[key] = plain_copy(default)
    for key, value in given.items():
        if key in defaults:
            continue
        if key in declared.rules:
            merged[key] = _merge_value(f'{path}.{key}', key, declared, value, problems, other_type)
        elif is_open:
            merged[key] = plain_copy(value)
            _warn_if_misspelt(f'{path}.{key}', key, known, declared)
        else:
            problems.unknown(f'{path}.{key}', value, known, declared.owner)
    if other_type:
        _report_missing(path, given['type'], declared.rules, merged, problems)
    return merged


def _merge_value(path: str, key: str, declared: Declared, value: Any, problems: Problems, other_type: bool) -> Any:
    default, rule = declared.defaults.get(key), declared.rules.get(key)
    if rule is not None and not isinstance(rule, dict):
        if isinstance(default, dict) and isinstance(value, Mapping):
            return _apply_rule(path, Loader(rule), merge_config(default, value), problems)
        return _apply_rule(path, Loader(rule), plain_copy(value), problems)
    if isinstance(value, Mapping) and (isinstance(default, dict) or isinstance(rule, dict)):
        return merge_section(path, declared.under(key), value, problems)
    if key not in declared.defaults or other_type:
        return plain_copy(value)
    if isinstance(default, dict):
        return merge_section(path, declared.under(key), value, problems)  # reports that it is not a dict
    return check_type(path, default, plain_copy(value), problems)


def _apply_rule(path: str, rule: Loader, value: Any, problems: Problems) -> Any:
    try:
        return rule(_plain_number(value))
    except Exception as error:  # whatever a user's rule raises is the verdict on the value
        problems.bad_value(path, value, error, rule.what, _retyped(rule, value))
        return value


def _retyped(rule: Loader, value: Any) -> str:
    """The remedy where only the type is wrong: 1e5 for a count, a number in quotes."""
    if isinstance(value, float) and value.is_integer() and rule.check(int(value)):
        return f'; write {int(value)}'
    if isinstance(value, str):
        for convert in (int, float):
            try:
                if rule.check(convert(value)):
                    return '; write it without quotes'
            except ValueError:
                continue
    return ''


def check_type(path: str, default: Any, value: Any, problems: Problems) -> Any:
    """Without a rule the type follows the default's; a default of None accepts anything."""
    value = _plain_number(value)
    if default is None:
        return value
    if isinstance(default, (list, tuple)):
        if isinstance(value, (list, tuple)):
            return type(default)(value)
        wanted: type | tuple[type, ...] = type(default)
    elif isinstance(default, float):
        if value in ('inf', '-inf'):
            return float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value:
            return value
        problems.add(path, f'got {value!r}, must be a number')
        return value
    else:
        wanted = type(default)
    if not instance_of(value, wanted):
        problems.add(path, f'got {value!r}, must be {type_name(wanted)}{_remedy(wanted, value)}')
    return value


def _remedy(wanted: Any, value: Any) -> str:
    if wanted is int and isinstance(value, float) and value.is_integer():
        return f'; write {int(value)}'
    if wanted is list and isinstance(value, str):
        return f'; write [{value!r}]'
    if wanted in (int, bool) and isinstance(value, str):
        plain = value.strip().lower()
        if wanted is bool and plain in ('yes', 'on', 'no', 'off'):
            return f'; write {"true" if plain in ("yes", "on") else "false"}'
        return '; write it without quotes' if plain in ('true', 'false') or plain.isdigit() else ''
    return ''


def _plain_number(value: Any) -> Any:
    """NumPy's scalars as Python's: they would not survive in a saved config."""
    if type(value).__module__ == 'numpy' and isinstance(value, numbers.Number):
        return value.item()  # type: ignore[attr-defined]
    if type(value).__module__ == 'numpy' and type(value).__name__ in ('bool', 'bool_'):
        return bool(value)
    return value


def _report_missing(path: str, type_: Any, rules: dict, merged: dict, problems: Problems) -> None:
    """A dict that replaced its default by another ``type`` must bring what the rules need."""
    for key, rule in rules.items():
        if key not in merged and isinstance(rule, Loader) and not rule.check(None):
            words = f', {rule.what}' if rule.what else ''
            problems.add(f'{path}.{key}', f'missing{words}; type {type_!r} replaces the defaults, so it must be given')


def _warn_if_misspelt(path: str, key: str, known: Mapping[str, Any], declared: Declared) -> None:
    near = difflib.get_close_matches(str(key), [str(k) for k in known], n=1, cutoff=0.85)
    if near:
        logger.warning(
            "%s: %s does not declare it, so it is passed on as it is; did you mean '%s'?", path, declared.owner, near[0]
        )
