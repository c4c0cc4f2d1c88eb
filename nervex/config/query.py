"""What ``nervex -q`` answers: the names of a registry, what one of them is and takes, the reference of all settings."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import shorten
from typing import Any

from nervex.config.config import builtin_configs
from nervex.config.sections import COMMON_ENV, SECTION_CLASSES, SECTIONS, TOP_SETTINGS
from nervex.loader.errors import shown
from nervex.loader.rules import rule_schema
from nervex.loader.sections import check_of
from nervex.utils.declare import UNSET, Section, Setting, declared_by
from nervex.utils.errors import UnknownNameError, unknown_name
from nervex.utils.import_helper import load_attribute
from nervex.utils.registry_factory import registries

_OTHERS = ('config', 'settings', 'schema')


def query(what: str, names: Sequence[str] = ()) -> Iterator[str]:
    """
    Overview:
        The lines that answer ``nervex -q WHAT [NAME...]``: a registry's names, or what is known about some of them.
    Arguments:
        - what (:obj:`str`): a registry; ``config``: the built-in configs; ``settings``: the reference of all settings
            (or of the sections that are named), in Markdown; ``schema``: the JSON schema of a config for a policy
    """
    if what == 'config':
        yield from _listed(_chosen('config', builtin_configs(), names))
    elif what == 'settings':
        yield from reference(_chosen('section', dict.fromkeys((*SECTIONS, 'policies')), names))
    elif what == 'schema':
        yield json.dumps(schema(names[0] if names else None), indent=2)
    elif what not in registries:
        raise UnknownNameError(unknown_name('registry', what, [*registries, *_OTHERS]))
    elif names:
        for name in names:
            yield from _described(what, name)
    else:
        yield from _listed(registries[what].query_details())


def _chosen(what: str, known: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    for name in names:
        if name not in known:
            raise UnknownNameError(unknown_name(what, name, known))
    return {name: known[name] for name in names or known}


def _listed(entries: dict[str, Any]) -> Iterator[str]:
    for key, where in sorted(entries.items()):
        yield f'{key:32} {where}'


def listing(what: str, width: int) -> Iterator[str]:
    """The names in a registry, or of the built-in configs, each with what it says of itself first; imports none."""
    entries = builtin_configs() if what == 'config' else registries[what].query_details()
    longest = max(map(len, entries))
    for name, where in sorted(entries.items()):
        said = _says(where.partition(':')[0] if what == 'policy' else where)  # of an algorithm its file says more
        yield f'{name:{longest}}  {shorten(said, max(width - longest - 2, 20), placeholder=" ...")}'.rstrip()


def _says(where: str) -> str:
    """The first sentence of the docstring of a file, a module or ``module:name``; '' where there is none."""
    path, name = where, ''
    if not os.path.isfile(where):
        module, _, name = where.partition(':')
        root, *below = module.split('.')
        spec = importlib.util.find_spec(root)
        base = os.path.join(next(iter((spec and spec.submodule_search_locations) or ['.'])), *below)
        path = f'{base}.py' if os.path.isfile(f'{base}.py') else os.path.join(base, '__init__.py')
    if not os.path.isfile(path):
        return ''
    with open(path, encoding='utf-8') as file:
        source = ast.parse(file.read())
    for node in source.body if name else [source]:
        if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
            return _says(f'{node.module}:{name}')
        if isinstance(node, ast.Module) or getattr(node, 'name', None) == name:
            text = ' '.join(first_paragraph(ast.get_docstring(node)))  # type: ignore[arg-type]
            return re.split(r'(?<=[.])\s+(?=[A-Z`])', text, maxsplit=1)[0].rstrip('.')
    return ''


def _described(registry: str, name: str) -> Iterator[str]:
    """One entry of a registry: where it is, what it says about itself, its settings or its arguments."""
    found = registries[registry].get(name)
    yield f'{registries[registry].what} {name}: {registries[registry].query_details([name])[name]}'
    yield from (f'  {line}' for line in first_paragraph(inspect.getdoc(found)))
    yield ''
    if isinstance(found, type) and hasattr(found, 'config'):
        section = declared_by(found, own_only=False, common=COMMON_ENV if registry == 'env' else None)
        yield from _columns([('setting', 'allowed', 'default', 'meaning'), *rows(section)])
    else:
        yield from _columns([('argument', 'type', 'default', ''), *_arguments(found)])


def first_paragraph(doc: str | None) -> list[str]:
    """The first paragraph of a docstring, without its heading."""
    lines = (doc or '').splitlines()
    if lines and lines[0].strip() == 'Overview:':
        lines = lines[1:]
    text = [line.strip() for line in lines]
    end = next((n for n, line in enumerate(text) if not line or (line.endswith('s:') and ' ' not in line)), len(text))
    return text[:end]


def rows(section: Section) -> Iterator[tuple[str, str, str, str]]:
    """For each setting: its path, what it may be, its default, its meaning."""
    for path, entry in section.leaves():
        yield path, allowed(entry), '' if entry.default is UNSET else shown_default(entry.default), meaning(entry)


def meaning(entry: Setting) -> str:
    """One line, with the setting that must agree."""
    return '; '.join(part for part in (entry.meaning, entry.same_as and f'the same as {entry.same_as}') if part)


def allowed(entry: Setting) -> str:
    """What a setting may be, in the words of its declaration."""
    if isinstance(entry.check, str):
        return entry.check
    words = check_of(entry).what
    return (words.split(' ', 1)[-1] or 'any') if entry.check is None else words or 'see its class'


def shown_default(value: Any) -> str:
    """A default as it is written."""
    return 'inf' if value == math.inf else shown(value, 40)


def _arguments(found: Any) -> Iterator[tuple[str, str, str, str]]:
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return
    for p in parameters:
        kind = '' if p.annotation is p.empty else inspect.formatannotation(p.annotation).strip("'")
        name = str(p.replace(annotation=p.empty, default=p.empty))  # with its stars
        yield name, kind, 'needed' if p.default is p.empty and '*' not in name else shown_default(p.default), ''


def _columns(table: Iterable[tuple[str, ...]]) -> Iterator[str]:
    cells = list(table)
    widths = [min(max(len(row[n]) for row in cells), 44) for n in range(len(cells[0]))]
    for row in cells:
        yield '  '.join(f'{cell:{width}}' for cell, width in zip(row, widths)).rstrip()


# ---- the reference of all settings
def reference(sections: Iterable[str]) -> Iterator[str]:
    """The settings of the framework's own classes as a Markdown page."""
    yield '# Settings'
    yield ''
    yield 'Made by `nervex -q settings` from the declarations beside the code; `nervex -q policy dqn` shows one class.'
    for name in sections:
        if name == 'policies':
            yield from _policies()
        else:
            yield from _table(name, _section(name))
        if name == 'env':
            for key in ('gym', 'pettingzoo'):
                yield from _table(f'env, with `env_type: {key}`', declared_by(registries['env'].get(key)), 'env')
            yield from _table('env.manager', declared_by(registries['env_manager'].get('base')))


def _section(name: str) -> Section:
    """What a section of a config may hold, whatever class it names."""
    if name == 'env':
        return declared_by('env', common=COMMON_ENV)  # open: every env has settings of its own
    return declared_by(load_attribute({**SECTION_CLASSES, 'policy': 'nervex.policy.parts:PolicyParts'}[name]))


def _policies() -> Iterator[str]:
    """What each policy adds to, or changes in, the settings that all have."""
    known = {path: (allowed(entry), entry.default) for path, entry in _section('policy').leaves()}
    for name, where in registries['policy'].query_details().items():
        if where.startswith('nervex.'):
            section = declared_by(registries['policy'].get(name))
            changed = [p for p, e in section.leaves() if known.get(p) != (allowed(e), e.default)]
            yield from _table(f'policy, with `policy_type: {name}`', section, 'policy', changed)


def _table(title: str, section: Section, prefix: str = '', only: Iterable[str] | None = None) -> Iterator[str]:
    chosen = None if only is None else set(only)
    yield from ('', f'## {title}', '', '| setting | allowed | default | meaning |', '|---|---|---|---|')
    for path, *cells in rows(section):
        if chosen is None or path in chosen:
            where = f'{prefix or title}.{path}'
            yield '| ' + ' | '.join(cell.replace('|', '\\|') for cell in (f'`{where}`', *cells)) + ' |'


# ---- for editors
def schema(policy: str | None = None) -> dict[str, Any]:
    """The JSON schema of a config: all sections, the policy's as this policy declares it."""
    top = Section('a config')
    top.declare(TOP_SETTINGS)
    for name in SECTIONS:
        section = top.entries[name] = _section(name)
        section.is_open |= name == 'replay_buffer'  # names of one's own
    if policy:
        top.entries['policy'] = declared_by(registries['policy'].get(policy))
    return {'$schema': 'http://json-schema.org/draft-07/schema#', **_schema_of(top)}


def _schema_of(section: Section) -> dict[str, Any]:
    properties = {}
    for key, entry in section.known().items():
        if isinstance(entry, Section):
            properties[key] = _schema_of(entry)
            continue
        properties[key] = dict(rule_schema(entry.check)) if isinstance(entry.check, str) else _by_default(entry)
        if meaning(entry):
            properties[key]['description'] = meaning(entry)
        if isinstance(entry.default, (bool, int, str)) or (
            isinstance(entry.default, float) and entry.default < math.inf
        ):
            properties[key]['default'] = entry.default
    is_open = section.is_open or (section.is_plain and not properties)
    return {'type': 'object', 'properties': properties, 'additionalProperties': is_open}


def _by_default(entry: Setting) -> dict[str, Any]:
    names = {bool: 'boolean', int: 'integer', float: 'number', str: 'string', list: 'array', dict: 'object'}
    name = names.get(type(entry.default)) if entry.check is None else None
    return {'type': name} if name else {}
