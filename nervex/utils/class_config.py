"""Nested dicts of settings: a copy, and one on top of another."""

from collections.abc import Mapping
from typing import Any


def plain_copy(value: Any) -> Any:
    """
    Overview:
        A copy made of plain dicts, lists and tuples; everything else (classes, functions, modules) is shared. Unlike
        ``copy.deepcopy`` it leaves nothing of EasyDict, whose attributes would follow the old object.
    """
    if isinstance(value, Mapping):
        items = dict.items(value) if isinstance(value, dict) else value.items()
        return {key: plain_copy(item) for key, item in items}
    if type(value) in (list, tuple):
        return type(value)(plain_copy(item) for item in value)
    return value


def other_type(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two dicts say that they are of different types: then the new one replaces the old one."""
    return 'type' in old and 'type' in new and old['type'] != new['type']


def merge_config(default: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """
    Overview:
        ``override`` on top of ``default``, as a new dict: two dicts merge key by key, anything else replaces; so does a
        dict whose ``type`` differs from the default's. None is a value like any other. Neither argument is changed.
    """
    merged = {key: plain_copy(value) for key, value in default.items()}
    for key, value in override.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping) and not other_type(old, value):
            merged[key] = merge_config(old, value)
        else:
            merged[key] = plain_copy(value)
    return merged
