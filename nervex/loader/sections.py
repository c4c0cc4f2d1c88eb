"""Declared defaults and a user's settings merged key by key, and each setting checked on the way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from nervex.loader.base import Loader, checked, keep, optional, type_name
from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.loader.rules import rule
from nervex.loader.values import numeric
from nervex.utils.class_config import merge_config, plain_copy
from nervex.utils.declare import UNSET, Section, Setting, declared_by
from nervex.utils.errors import nearest

logger = logging.getLogger(__name__)


def complete(cls: type, given: Mapping[str, Any] | None, path: str, own_only: bool = True) -> dict[str, Any]:
    """
    Overview:
        What an object of ``cls`` runs with: its declared defaults with ``given`` on top, every setting checked; one
        ConfigError says all that is wrong.
    Arguments:
        - path (:obj:`str`): where these settings stand in a config, for messages
        - own_only (:obj:`bool`): see ``declared_by``
    """
    problems = Problems()
    merged = merge_section(path, declared_by(cls, own_only), given or {}, problems)
    problems.raise_if_any()
    return merged


def merge_section(path: str, section: Section, given: Any, problems: Problems) -> dict[str, Any]:
    """
    Overview:
        The settings of one section (or nested dict): defaults, with what was given on top. dict on dict merges, a list
        replaces, None is a value, and a dict whose ``type`` differs from the default's replaces it.
    """
    if not isinstance(given, Mapping):
        problems.add(
            path, f'got {shown(given)}, must be a dict' + (' (write {} for an empty one)' if given is None else '')
        )
        return section.defaults()
    known, type_ = section.known(), section.entries.get('type')
    other_type = isinstance(type_, Setting) and 'type' in given and type_.default not in (UNSET, None, given['type'])
    is_open = section.is_open or (section.is_plain and (other_type or not known))
    merged = {} if other_type else section.defaults()
    for key, value in given.items():
        where = f'{path}.{key}'
        if key in known:
            merged[key] = _merge_entry(where, section, known[key], value, problems, other_type)
        elif is_open:
            merged[key] = plain_copy(value)
            _warn_if_misspelt(where, key, section)
        else:
            problems.unknown(where, value, known, section.owner)
    _report_missing(path, section, merged, problems, given.get('type') if other_type else None)
    return {**{key: merged[key] for key in known if key in merged}, **merged}


def _merge_entry(
    path: str, section: Section, entry: Setting | Section, value: Any, problems: Problems, other_type: bool
) -> Any:
    if isinstance(entry, Setting) and isinstance(entry.check, Mapping):
        entry = section.section_of(entry)
    if isinstance(entry, Section):
        return merge_section(path, entry, value, problems)
    if other_type and entry.check is None:
        return plain_copy(value)
    if isinstance(entry.default, dict) and isinstance(value, Mapping):
        value = merge_config(entry.default, value)
    return check_value(path, entry, plain_copy(value), problems)


class Parts:
    """
    Overview:
        The check of a dict whose entries a user names, such as hooks.
    Arguments:
        - check (:obj:`Callable`): ``check(path, name, value, problems)`` of one entry
        - what (:obj:`str`): what the entries are, e.g. ``'hooks'``
    """

    def __init__(self, check: Callable[[str, str, Any, Problems], Any], what: str) -> None:
        self.check, self.what = check, f'a dict of {what} by name'

    def check_all(self, path: str, value: Any, problems: Problems) -> Any:
        """The value, unchanged; what is wrong with any of its entries becomes a problem."""
        if not isinstance(value, Mapping):
            problems.add(path, f'got {shown(value)}, must be {self.what}')
            return value
        for name, part in value.items():
            self.check(f'{path}.{name}', name, part, problems)
        return value


def check_of(entry: Setting) -> Loader:
    """What a value of the setting goes through; without a check the type follows the default's."""
    if isinstance(entry.check, Parts):
        return Loader(dict, entry.check.what)
    if entry.check is None:
        return _like(entry.default)
    loader = rule(entry.check) if isinstance(entry.check, str) else Loader(entry.check)
    return optional(loader) if entry.default is None and not loader.check(None) else loader


def _like(default: Any) -> Loader:
    """The same type as a default; a default of None accepts anything."""
    if default is None or default is UNSET:
        return keep()
    if isinstance(default, float):
        return Loader(Loader(lambda got: float(got) if got in ('inf', '-inf') else got) >> numeric(), 'a number')
    sequence = isinstance(default, (list, tuple))
    kind = type(default)
    return checked(type_name(kind), (list, tuple) if sequence else kind, answer=kind if sequence else None)


def check_value(path: str, entry: Setting, value: Any, problems: Problems) -> Any:
    """The value after the setting's check; what is wrong with it becomes a problem."""
    if isinstance(entry.check, Parts):
        return entry.check.check_all(path, value, problems)
    value, loader = _plain_number(value), check_of(entry)
    try:
        return loader(value)
    except Exception as error:  # whatever a user's rule raises is the verdict on the value
        problems.bad_value(path, value, error, loader.what, _remedy(loader, value))
        return value


def _remedy(loader: Loader, value: Any) -> str:
    """What to write where only the form is wrong: 1e5 for a count, a number in quotes, one item without its list."""
    if isinstance(value, float) and value.is_integer() and loader.check(int(value)):
        return f'; write {int(value)}'
    if not isinstance(value, str):
        return ''
    plain = value.strip().lower()
    if plain in ('yes', 'on', 'no', 'off') and loader.check(True):
        return f'; write {"true" if plain in ("yes", "on") else "false"}'
    if plain in ('true', 'false') and loader.check(True):
        return '; write it without quotes'
    for convert in (int, float):
        try:
            if loader.check(convert(value)):
                return '; write it without quotes'
        except ValueError:
            continue
    return f'; write [{shown(value)}]' if loader.check([value]) else ''


def _plain_number(value: Any) -> Any:
    """NumPy's scalars as Python's: they would not survive in a saved config."""
    is_number = type(value).__module__ == 'numpy' and hasattr(value, 'item') and not hasattr(value, '__len__')
    return value.item() if is_number else value


def _report_missing(path: str, section: Section, merged: dict, problems: Problems, type_: Any) -> None:
    """What is needed; and a dict that replaced its default by another ``type_`` must bring what the checks need."""
    for key, entry in section.known().items():
        if key in merged or isinstance(entry, Section):
            continue
        what = check_of(entry).what
        if entry.needed or (type_ is not None and entry.check is not None and not check_of(entry).check(None)):
            why = f'{section.owner} needs it' if entry.needed else f'type {type_!r} replaces the defaults'
            problems.add(f'{path}.{key}', f'missing; {why}' + (f': {what}' if what else ''))


def _warn_if_misspelt(path: str, key: str, section: Section) -> None:
    if (near := nearest(key, section.known(), alike=0.85)) is not None:
        text = "%s: %s does not declare it, so it is passed on as it is; did you mean '%s'?"
        logger.warning(text, path, section.owner, near)
