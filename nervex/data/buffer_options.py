"""The options of a named buffer, and the forms in which a config may write them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nervex.loader.base import optional
from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.loader.rules import registered
from nervex.loader.sections import merge_section
from nervex.utils.class_config import merge_config
from nervex.utils.declare import Section, setting, settings
from nervex.utils.errors import nearest
from nervex.utils.registry_factory import BUFFER_REGISTRY

DEFAULT_NAME = 'armor'  # the one buffer of a config that names none
#: What a buffer is when its config does not say otherwise.
OPTIONS = settings(
    type=setting(None, optional(registered(BUFFER_REGISTRY)), 'registered kind of buffer; None: what the policy needs'),
    meta_maxlen=setting(4096, 'whole >= 1', 'rows that a replay buffer keeps'),
    replay_start_size=setting(0, 'int >= 0', 'rows that must be there before the first sample'),
    max_reuse=setting(math.inf, 'int >= 1 | inf', 'samples that a row may take part in before it is removed'),
    max_staleness=setting(math.inf, 'number >= 0 | inf', 'updates since its collection after which a row is removed'),
    min_sample_ratio=setting(1.0, 'number >= 0', 'rows that must be stored, as a multiple of the batch size'),
    frame_axis=setting(
        None, 'int | None', 'axis of the frames of image stacks: each is kept once; None: rows as given'
    ),
    drop_last=setting(False, 'bool', 'on_policy: leave out a last minibatch that is shorter than the others'),
    use_priority=setting(None, 'bool | None', 'sample by priority; None: as soon as somebody gives one'),
    alpha=setting(0.6, 'number >= 0', 'exponent of the priority; 0 samples uniformly'),
    beta=setting(0.4, 'number in [0, 1]', 'exponent of the importance sampling weight at the start'),
    anneal_step=setting(100000, 'number >= 0 | inf', 'sample calls until beta is 1; 0 or inf leaves it as it is'),
    enable_track_used_data=setting(False, 'bool', 'keep rows that max_reuse removed, for used_data()'),
    deepcopy=setting(False, 'bool', 'copy objects (not arrays, those always are) when they are sampled'),
    enable_cache=setting(False, 'bool', 'while run() is active, store pushed rows in portions, from a thread'),
    cache_maxlen=setting(256, 'int >= 1', 'rows in a portion'),
    timeout=setting(8, 'number >= 0', 'seconds after which a smaller portion is stored anyway'),
    monitor=dict(
        log_freq=setting(2000, 'int >= 0', 'samples between two lines of statistics; 0: none'),
        log_path=setting('', 'str', "folder of the statistics; '': <exp_name>/log/buffer/<name>_buffer"),
        natural_expire=setting(100, 'number > 0', 'seconds that the window of the rates covers'),
        tick_expire=setting(100, 'int >= 1', 'recorded samples that the window of the averages covers'),
    ),
)
_ALIASES = {
    'maxlen': 'meta_maxlen',
    'replay_buffer_size': 'meta_maxlen',
    'buffer_length': 'meta_maxlen',
    'max_use': 'max_reuse',
}


def read_options(cfg: Mapping) -> dict[str, dict[str, Any]]:
    """
    Overview:
        Name -> complete options of every buffer of a config, which is flat, or names its buffers and has a section for
        each; flat options hold for all of them. ConfigError lists everything that is wrong. ``cfg`` is not changed.
    """
    declared, problems = Section('BufferManager'), Problems()
    declared.declare(OPTIONS)
    given = {
        name: _todays(own) if isinstance(own, Mapping) and declared.at(name) is None else own
        for name, own in _todays(cfg).items()
    }
    merged = merge_buffers(given, declared, problems)
    problems.raise_if_any()
    return {
        name: {key: math.inf if value == 'inf' else value for key, value in merged[name].items()}
        for name in merged['buffer_name']
    }


def _todays(section: Mapping) -> dict[str, Any]:
    return {_ALIASES.get(key, key): value for key, value in section.items()}


def merge_buffers(given: Any, declared: Section, problems: Problems) -> dict[str, Any]:
    """
    Overview:
        Every named buffer with all its settings, ``{'buffer_name': [...], name: {...}}``. Flat settings hold for each
        buffer; a dict that is not itself a setting is a buffer; without any name there is one, called ``armor``.
    """
    if not isinstance(given, Mapping):
        problems.add('replay_buffer', f'got {shown(given)}, must be a dict')
        given = {}
    names, known = _names(given, declared, problems), declared.known()
    shared = {}
    for key, value in given.items():
        if key in known:
            shared[key] = value
        elif key != 'buffer_name' and key not in names:
            problems.unknown(f'replay_buffer.{key}', value, [*known, *names, 'buffer_name'], declared.owner)
    merged: dict[str, Any] = {'buffer_name': list(names)}
    for name in names:
        own = given.get(name, {})
        if not isinstance(own, Mapping):
            problems.add(f'replay_buffer.{name}', f'got {shown(own)}, must be a dict: the settings of that buffer')
            own = {}
        path = f'replay_buffer.{name}' if name in given else 'replay_buffer'
        merged[name] = merge_section(path, declared, merge_config(shared, own), problems)
    return merged


def _names(given: Mapping, declared: Section, problems: Problems) -> list[str]:
    listed = given.get('buffer_name')
    if listed is not None:
        listed = as_names(listed) if isinstance(listed, (str, list, tuple)) else []
        if not listed or not all(isinstance(n, str) and n for n in listed):
            problems.add('replay_buffer.buffer_name', f'got {shown(given["buffer_name"])}, must be a list of names')
        elif len(set(listed)) < len(listed):
            problems.add('replay_buffer.buffer_name', f'got {shown(listed)}: a name is there twice')
        else:
            return listed
        return [DEFAULT_NAME]
    nested = [key for key, entry in declared.known().items() if isinstance(entry, Section)]
    names = [
        key
        for key, value in given.items()
        if isinstance(value, Mapping) and key not in declared.known() and not (nested and nearest(str(key), nested))
    ]
    return names or [DEFAULT_NAME]


def as_names(names: Sequence[str] | str) -> list[str]:
    """One name or several as a list."""
    return [names] if isinstance(names, str) else list(names)
