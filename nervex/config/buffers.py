"""The forms in which ``replay_buffer`` may be written, brought into one: ``{'buffer_name': [...], name: {...}}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nervex.loader.problems import Problems
from nervex.loader.sections import merge_section
from nervex.utils.class_config import merge_config
from nervex.utils.declare import Section, Setting
from nervex.utils.errors import nearest

DEFAULT_NAME = 'armor'  # the one buffer of a config that names none


def merge_buffers(given: Any, declared: Section, problems: Problems) -> dict[str, Any]:
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
    known = declared.known()
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
        kind = declared.entries.get('type')
        same = (
            {'type': replace(kind, default=settings['type'])}
            if 'type' in settings and isinstance(kind, Setting)
            else {}
        )
        base = replace(declared, entries={**declared.entries, **same})
        path = f'replay_buffer.{name}' if name in given else 'replay_buffer'
        merged[name] = merge_section(path, base, settings, problems)
    return merged


def _names(given: Mapping, declared: Section, problems: Problems) -> list[str]:
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
    nested = [key for key, entry in declared.known().items() if isinstance(entry, Section)]
    names = [
        key
        for key, value in given.items()
        if isinstance(value, Mapping) and key not in declared.known() and not (nested and nearest(str(key), nested))
    ]
    return names or [DEFAULT_NAME]
