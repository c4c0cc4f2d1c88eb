"""The forms in which ``replay_buffer`` may be written, brought into one: ``{'buffer_name': [...], name: {...}}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nervex.config.check import Declared, merge_section
from nervex.config.problems import Problems
from nervex.utils.class_config import merge_config
from nervex.utils.errors import nearest

DEFAULT_NAME = 'armor'  # the one buffer of a config that names none


def merge_buffers(given: Any, declared: Declared, problems: Problems) -> dict[str, Any]:
    """
    Overview:
        Every named buffer with all its settings. Flat settings hold for each buffer; a dict that is not itself a
        setting is a buffer; without any name there is one, called ``armor``.
    """
    if not isinstance(given, Mapping):
        problems.add('replay_buffer', f'got {given!r}, must be a dict')
        given = {}
    names = _names(given, declared, problems)
    flat = {key: value for key, value in given.items() if key != 'buffer_name' and key not in names}
    known = {**declared.defaults, **declared.rules}
    shared = {}
    for key, value in flat.items():
        if key in known:
            shared[key] = value
        else:
            problems.unknown(f'replay_buffer.{key}', value, [*known, *names, 'buffer_name'], declared.owner)
    merged: dict[str, Any] = {'buffer_name': list(names)}
    for name in names:
        own = given.get(name, {})
        if not isinstance(own, Mapping):
            problems.add(f'replay_buffer.{name}', f'got {own!r}, must be a dict: the settings of that buffer')
            own = {}
        settings = merge_config(shared, own)
        # a buffer of another type has the same settings, so that ``type`` does not replace them
        kind = {'type': settings['type']} if 'type' in settings else {}
        base = replace(declared, defaults={**declared.defaults, **kind})
        path = f'replay_buffer.{name}' if name in given else 'replay_buffer'
        merged[name] = merge_section(path, base, settings, problems)
    return merged


def _names(given: Mapping, declared: Declared, problems: Problems) -> list[str]:
    listed = given.get('buffer_name')
    if isinstance(listed, str):
        listed = [listed]
    if listed is not None:
        if isinstance(listed, (list, tuple)) and listed and all(isinstance(n, str) and n for n in listed):
            if len(set(listed)) == len(listed):
                return list(listed)
            problems.add('replay_buffer.buffer_name', f'got {listed!r}: a name is there twice')
        else:
            problems.add('replay_buffer.buffer_name', f'got {given["buffer_name"]!r}, must be a list of names')
        return [DEFAULT_NAME]
    nested = [k for k, d in declared.defaults.items() if isinstance(d, dict)]
    names = [
        key
        for key, value in given.items()
        if isinstance(value, Mapping)
        and key not in declared.defaults
        and key not in declared.rules
        and not (nested and nearest(str(key), nested))
    ]
    return names or [DEFAULT_NAME]
