"""BufferManager: the named buffers of a run behind one locked interface."""
from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from nervex.data.batch import Batch
from nervex.data.on_policy import OnPolicyKind
from nervex.data.replay import ReplayKind
from nervex.utils.errors import ConfigError, UnknownNameError, nearest, unknown_name

logger = logging.getLogger(__name__)
_KINDS = {'replay': ReplayKind, 'on_policy': OnPolicyKind}
_ALIASES = {'maxlen': 'meta_maxlen', 'replay_buffer_size': 'meta_maxlen', 'max_use': 'max_reuse'}
DEFAULT_NAME = 'armor'


class BufferManager:
    """
    Overview:
        Holds one or several named buffers. ``cfg`` is flat (``{'meta_maxlen': 100}``: one buffer called ``armor``), or
        names its buffers (``{'buffer_name': ['agent', 'demo'], 'agent': {...}, 'demo': {...}}``). It is never changed.
        Thread-safe: one lock around every call.
    Interfaces:
        push_data, sample, batches, update, count, clear, start, run, close, used_data, state_dict, load_state_dict
    """

    #: What a buffer is when its config does not say otherwise.
    config = {
        'type': None,                 # 'replay': a ring, sampled at random; 'on_policy': one round, used by batches();
                                      # None: what the policy is
        'meta_maxlen': 4096,          # rows that a replay buffer keeps
        'replay_start_size': 0,       # rows that must be there before the first sample
        'max_reuse': math.inf,        # samples that a row may take part in before it is removed
        'max_staleness': math.inf,    # learner iterations after its collection at which a row is removed
        'min_sample_ratio': 1.0,      # rows that must be stored, as a multiple of the batch size
        'frame_axis': None,           # axis of the frames of image stacks: each is kept once; None: rows as they are
        'drop_last': False,           # on_policy: leave out a last minibatch that is shorter than the others
        'use_priority': None,         # True, False, or None: as soon as somebody gives a priority
        'alpha': 0.6,                 # exponent of the priority; 0 samples uniformly
        'beta': 0.4,                  # exponent of the importance sampling weight at the start
        'anneal_step': 100000,        # sample calls after which beta has reached 1; 0 or inf leaves it as it is
        'enable_track_used_data': False,  # keep rows that were removed after max_reuse samples for used_data()
        'deepcopy': False,            # copy objects (not arrays, those always are) when they are sampled
        'cache_maxlen': 256,          # rows that push_data may hold back while run() is active
        'timeout': 8,                 # seconds after which rows held back are stored anyway
        'monitor': {
            'log_freq': 2000,             # samples or pushes between two lines of statistics
            'log_path': '',               # folder of the statistics; '' is <exp_name>/log/buffer/<name>_buffer
            'natural_expire': 100,        # seconds that the window of the rates covers
            'tick_expire': 100,           # pushes or samples that the window of the averages covers
        },
    }

    def __init__(self, cfg: Mapping | None = None, tb_logger: Any = None, exp_name: str = '.', seed: int | None = None,
                 on_policy: bool | None = None) -> None:
        self._exp_name, self._tb_logger = exp_name, tb_logger
        self._lock = threading.RLock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        sections = _sections(cfg or {}, self.config)
        seeds = np.random.SeedSequence(seed).spawn(len(sections))
        self._buffers: dict[str, Any] = {}
        for (name, section), child in zip(sections.items(), seeds):
            kind = section['type'] or ('on_policy' if on_policy else 'replay')
            self._buffers[name] = _KINDS[kind](name, SimpleNamespace(**section), child)
        self._only = next(iter(self._buffers.values())) if len(self._buffers) == 1 else None

    @property
    def buffer_name(self) -> list[str]:
        """Names of the buffers."""
        return list(self._buffers)

    @property
    def replay_start_size(self) -> int:
        """Rows that must be collected before the first sample (the largest of all buffers)."""
        return max(b.start_size for b in self._buffers.values())

    def push_data(self, data: Batch | Mapping | Sequence[Mapping],
                  buffer_name: Sequence[str] | str | None = None) -> None:
        """
        Overview:
            Store rows: a Batch of n rows (columns as they are), one dict, or a list of dicts.
        Arguments:
            - buffer_name (:obj:`list[str] | None`): None means the ``'buffer_name'`` of the first row, or all buffers
        """
        only = self._only if buffer_name is None else None
        if only is not None and (type(data) is Batch or (type(data) is dict and 'buffer_name' not in data)):
            self._acquire()  # half the price of a with statement
            try:
                if type(data) is dict:
                    only.push_row(data)
                elif data._columns:
                    only.push(data._columns)
            finally:
                self._release()
            return
        rows, buffer_name = self._rows(data, buffer_name)
        if not rows._columns:
            return
        names = list(self._buffers) if buffer_name is None else _names(buffer_name)
        targets = [self._get(name) for name in names]
        with self._lock:
            for buffer in targets:
                buffer.push(rows._columns)

    def _rows(self, data: Any, buffer_name: Any) -> tuple[Batch, Any]:
        if isinstance(data, (Mapping, Batch)):
            data = [data] if isinstance(data, Mapping) or not _has_length(data) else data
        if isinstance(data, Batch):
            return Batch.of(data._columns), buffer_name
        rows = []
        for item in data:
            if isinstance(item, (Mapping, Batch)):
                rows.append(item)
            else:
                logger.error('push_data: a row must be a dict, got %s: it is left out', type(item).__name__)
        if buffer_name is None and rows and 'buffer_name' in rows[0]:
            buffer_name = rows[0]['buffer_name']
        if rows and 'buffer_name' in rows[0]:
            rows = [{k: v for k, v in row.items() if k != 'buffer_name'} for row in rows]
        return Batch.from_rows(rows), buffer_name

    def sample(self, batch_size: int | Mapping[str, int], cur_learner_iter: int = 0, reuse: bool = False) -> Any:
        """
        Overview:
            A Batch of ``batch_size`` rows; with several buffers (or a dict of sizes) a dict of Batches; None when one
            of the buffers has not enough data.
        Arguments:
            - reuse (:obj:`bool`): give one of two alternating batches, valid until the next but one sample
        """
        if self._only is not None and isinstance(batch_size, int):
            self._acquire()
            try:
                return self._only.sample(batch_size, cur_learner_iter, reuse)
            finally:
                self._release()
        sizes = dict(batch_size) if isinstance(batch_size, Mapping) else dict.fromkeys(self._buffers, batch_size)
        with self._lock:
            if not all(self._get(name).ready(size, cur_learner_iter) for name, size in sizes.items()):
                return None
            return {name: self._get(name).sample(size, cur_learner_iter, reuse) for name, size in sizes.items()}

    def batches(self, batch_size: int, count: int, cur_learner_iter: int = 0) -> Iterator[Any]:
        """
        Overview:
            What a learner iterates. A replay buffer gives up to ``count`` samples; an on-policy buffer ``count`` epochs
            of shuffled minibatches and is empty afterwards. A batch is valid until the next but one.
        """
        if self._only is not None:
            return _locked(self._only.batches(batch_size, count, cur_learner_iter), self._lock)
        return self._joint_batches(batch_size, count, cur_learner_iter)

    def _joint_batches(self, batch_size: Any, count: int, cur_learner_iter: int) -> Iterator[dict]:
        for k in range(count):
            batch = self.sample(batch_size, cur_learner_iter + k, reuse=True)
            if batch is None:
                logger.warning('buffers: only %d of %d samples', k, count)
                return
            yield batch

    def update(self, info: Mapping) -> None:
        """
        Overview:
            New priorities: ``{'priority', 'replay_unique_id', 'replay_buffer_idx'}`` of equal length, or a dict of them
            by buffer name. Without a priority nothing happens; rows that were overwritten since are skipped.
        """
        with self._lock:
            if info and all(name in self._buffers and isinstance(part, Mapping) for name, part in info.items()):
                for name, part in info.items():
                    self._buffers[name].update(part)
            elif info.get('priority') is not None:
                for name, part in _by_buffer(info, self._buffers).items():
                    self._buffers[name].update(part)

    def count(self, name: str | None = None) -> int:
        """Rows of one buffer; without a name the smallest count of all."""
        with self._lock:
            return self._get(name).count if name is not None else min(b.count for b in self._buffers.values())

    def clear(self, names: Sequence[str] | str | None = None) -> None:
        """Empty the named buffers, or all."""
        with self._lock:
            for name in (_names(names) if names is not None else list(self._buffers)):
                self._get(name).clear()

    def used_data(self, name: str | None = None) -> Any:
        """One row that was removed because it had been used often enough; None if there is none."""
        with self._lock:
            return (self._only if name is None and self._only is not None else self._get(name)).used_data()

    def start(self) -> None:
        """Begin background work, if the config asks for any."""

    run = start

    def close(self) -> None:
        """End background work and close files. May be called twice."""

    def __enter__(self) -> BufferManager:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on exactly: contents, counters, generators. Loads with weights_only=True."""
        with self._lock:
            return {'version': 1, 'buffers': {name: b.state_dict() for name, b in self._buffers.items()}}

    def load_state_dict(self, state: Mapping) -> None:
        """Put back what ``state_dict`` gave; the buffers must have the same names and kinds."""
        with self._lock:
            if set(state['buffers']) != set(self._buffers):
                raise ValueError(f"the saved buffers are {sorted(state['buffers'])}, these are {sorted(self._buffers)}")
            for name, part in state['buffers'].items():
                self._buffers[name].load_state_dict(part)

    def _get(self, name: str) -> Any:
        if name not in self._buffers:
            raise UnknownNameError(unknown_name('buffer', name, self._buffers))
        return self._buffers[name]


def _locked(batches: Iterator, lock: Any) -> Iterator:
    """Hold the lock while the next batch is made, not while it is learned from."""
    try:
        while True:
            with lock:
                batch = next(batches, None)
            if batch is None:
                return
            yield batch
    finally:
        with lock:
            batches.close()  # type: ignore[attr-defined]


def _by_buffer(info: Mapping, buffers: Mapping) -> dict[str, Mapping]:
    if len(buffers) == 1:
        return {next(iter(buffers)): info}
    name = getattr(info['replay_unique_id'], 'buffer_name', '')
    if name:
        return {name: info}
    owners = np.array([str(i).rsplit('_', 1)[0] for i in info['replay_unique_id']])
    parts = {}
    for name in dict.fromkeys(owners.tolist()):
        if name not in buffers:
            raise UnknownNameError(unknown_name('buffer', name, buffers))
        rows = np.flatnonzero(owners == name)
        keys = ('priority', 'replay_unique_id', 'replay_buffer_idx')
        parts[name] = {key: [info[key][k] for k in rows] for key in keys}
    return parts


def _names(names: Sequence[str] | str) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _has_length(batch: Batch) -> bool:
    try:
        return len(batch) >= 0
    except TypeError:
        return False


def _sections(cfg: Mapping, defaults: Mapping) -> dict[str, dict]:
    """Name -> complete options of every buffer that ``cfg`` describes."""
    names = _names(cfg.get('buffer_name') or DEFAULT_NAME)
    shared = {k: v for k, v in cfg.items() if k not in names and k != 'buffer_name'}
    problems: list[str] = []
    sections = {name: _section(name, {**shared, **(cfg.get(name) or {})}, defaults, problems) for name in names}
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return sections


def _section(name: str, given: Mapping, defaults: Mapping, problems: list[str]) -> dict:
    section = {k: dict(v) if isinstance(v, Mapping) else v for k, v in defaults.items()}
    for key, value in given.items():
        key = _ALIASES.get(key, key)
        if key not in defaults:
            near = nearest(key, defaults)
            hint = f"; did you mean '{near}'?" if near else ''
            problems.append(f"replay_buffer.{name}.{key}: unknown setting{hint} Known: {', '.join(sorted(defaults))}")
        elif isinstance(defaults[key], Mapping):
            section[key].update(value or {})
        else:
            section[key] = value
    if section['type'] not in (None, *_KINDS):
        problems.append(f"replay_buffer.{name}.type: '{section['type']}' is not one of {', '.join(_KINDS)}")
    if not isinstance(section['meta_maxlen'], (int, np.integer)) or section['meta_maxlen'] < 1:
        problems.append(f"replay_buffer.{name}.meta_maxlen: {section['meta_maxlen']!r} is not a number of rows >= 1")
    return section
