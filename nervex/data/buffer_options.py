"""The options of a named buffer: defaults, rules, older spellings, and how a config is read into them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nervex.loader import Loader, interval, is_type, numeric, optional
from nervex.utils.errors import ConfigError, nearest, unknown_name
from nervex.utils.registry_factory import BUFFER_REGISTRY

DEFAULT_NAME = 'armor'  # the one buffer of a config that names none
#: What a buffer is when its config does not say otherwise.
DEFAULTS: dict[str, Any] = {
    'type': None,  # 'replay': a ring, sampled at random; 'on_policy': one round, used up by batches();
    # None: what the policy is; or a kind of one's own, registered in BUFFER_REGISTRY
    'meta_maxlen': 4096,  # rows that a replay buffer keeps
    'replay_start_size': 0,  # rows that must be there before the first sample
    'max_reuse': math.inf,  # samples that a row may take part in before it is removed
    'max_staleness': math.inf,  # age in learner iterations since its collection above which a row is removed
    'min_sample_ratio': 1.0,  # rows that must be stored, as a multiple of the batch size
    'frame_axis': None,  # axis of the frames of image stacks: each is kept once; None: rows as they are
    'drop_last': False,  # on_policy: leave out a last minibatch that is shorter than the others
    'use_priority': None,  # True, False, or None: as soon as somebody gives a priority
    'alpha': 0.6,  # exponent of the priority; 0 samples uniformly
    'beta': 0.4,  # exponent of the importance sampling weight at the start
    'anneal_step': 100000,  # sample calls after which beta has reached 1; 0 or inf leaves it as it is
    'enable_track_used_data': False,  # keep rows that were removed after max_reuse samples for used_data()
    'deepcopy': False,  # copy objects (not arrays, those always are) when they are sampled
    'enable_cache': False,  # while run() is active, store pushed rows in larger portions from a thread
    'cache_maxlen': 256,  # rows in a portion
    'timeout': 8,  # seconds after which a smaller portion is stored anyway
    'monitor': {
        'log_freq': 2000,  # samples between two lines of statistics; 0: none
        'log_path': '',  # folder of the statistics; '' is <exp_name>/log/buffer/<name>_buffer
        'natural_expire': 100,  # seconds that the window of the rates covers
        'tick_expire': 100,  # recorded samples that the window of the averages covers
    },
}
_COUNT = is_type(int) & interval(1)
_COUNT_OR_0 = is_type(int) & interval(0)
_FINITE = numeric(inf_ok=False)
_ENDLESS = Loader((lambda value: value in ('inf', math.inf), "it is not 'inf'"), "'inf'")


def _registered(kind: Any) -> Any:
    if not isinstance(kind, str) or kind not in BUFFER_REGISTRY:
        raise ValueError(unknown_name('kind of buffer', kind, BUFFER_REGISTRY))
    return kind


RULES: dict[str, Any] = {
    'type': optional(Loader(_registered)),
    'meta_maxlen': _COUNT,
    'replay_start_size': _COUNT_OR_0,
    'max_reuse': _COUNT | _ENDLESS,
    'max_staleness': (numeric() & interval(0)) | _ENDLESS,
    'min_sample_ratio': _FINITE & interval(0),
    'frame_axis': optional(is_type(int)),
    'drop_last': is_type(bool),
    'use_priority': optional(is_type(bool)),
    'alpha': _FINITE & interval(0),
    'beta': _FINITE & interval(0, 1),
    'anneal_step': numeric() & interval(0),
    'enable_track_used_data': is_type(bool),
    'deepcopy': is_type(bool),
    'enable_cache': is_type(bool),
    'cache_maxlen': _COUNT,
    'timeout': numeric() & interval(0),
    'monitor': {
        'log_freq': _COUNT_OR_0,
        'log_path': is_type(str),
        'natural_expire': numeric() & interval(0, left_ok=False),
        'tick_expire': _COUNT,
    },
}
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
    problems: list[str] = []
    names = _names(cfg)
    if len(set(names)) < len(names):
        problems.append(f'replay_buffer.buffer_name: got {names}: a name is there twice')
    shared = {k: v for k, v in cfg.items() if k not in names and k != 'buffer_name'}
    options = {}
    for name in names:
        own = cfg.get(name, {})
        path = f'replay_buffer.{name}' if name in cfg else 'replay_buffer'
        options[name] = _section(path, {**shared, **own}, DEFAULTS, RULES, problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return options


def _names(cfg: Mapping) -> list[str]:
    listed = cfg.get('buffer_name')
    if listed is not None:
        return as_names(listed)
    found = [name for name, value in cfg.items() if isinstance(value, Mapping) and name not in DEFAULTS]
    return found or [DEFAULT_NAME]


def as_names(names: Sequence[str] | str) -> list[str]:
    """One name or several as a list."""
    return [names] if isinstance(names, str) else list(names)


def _section(path: str, given: Mapping, defaults: Mapping, rules: Mapping, problems: list[str]) -> dict[str, Any]:
    section = dict(defaults)
    for key, value in given.items():
        key = _ALIASES.get(key, key)
        if key not in defaults:
            near = nearest(key, defaults)
            hint = f"; did you mean '{near}'?" if near else '.'
            problems.append(f'{path}.{key}: unknown setting{hint} Known: {", ".join(sorted(defaults))}')
        elif isinstance(defaults[key], Mapping):
            section[key] = _section(f'{path}.{key}', value or {}, defaults[key], rules[key], problems)
        else:
            section[key] = value
            if not rules[key].check(value):
                problems.append(f'{path}.{key}: got {value!r}, must be {rules[key].what}')
            elif value == 'inf':
                section[key] = math.inf
    return section
