"""BufferManager: the named buffers of a run behind one locked interface."""

from __future__ import annotations

import copy
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from nervex.data.batch import Batch, Row, has_length
from nervex.data.buffer import Buffer
from nervex.data.buffer_log import BufferLog
from nervex.data.buffer_options import OPTIONS, as_names, read_options
from nervex.data.origins import UPDATE_KEYS, by_buffer
from nervex.data.replay_buffer import ReplayBuffer
from nervex.data.structure import Cache
from nervex.utils import tree
from nervex.utils.errors import UnknownNameError, unknown_name
from nervex.utils.registry_factory import BUFFER_REGISTRY

_VERSION = 4  # of the saved state


class BufferManager:
    """
    Overview:
        Holds one or several named buffers, of any kind that has the methods of ``Buffer``. ``cfg`` is flat
        (``{'meta_maxlen': 100}``: one buffer called ``armor``), or names its buffers (``{'buffer_name': ['agent',
        'demo'], 'agent': {...}, 'demo': {...}}``). It is never changed.
        Thread-safe: one lock around every call.
    Arguments:
        - tb_logger (:obj:`Any`): gets the statistics in place of a TensorBoard logger of each buffer's own
        - exp_name (:obj:`str`): the run's folder, under which the statistics go
        - seed (:obj:`int | None`): of all sampling
        - on_policy (:obj:`bool | None`): kind of the buffers whose ``type`` is None
        - use_priority (:obj:`bool | None`): of the buffers whose ``use_priority`` is None
        - process_fn (:obj:`Callable | None`): ``process_fn(batch, buffer, indices)`` answers what ``sample`` and
          ``batches`` give in place of each batch; ``buffer`` is a ReplayBuffer over the same rows, to be read by slots
          (``buffer[slots]``, ``prev``, ``next``), ``indices`` the slots of the batch. It is called under the lock
    Interfaces:
        push_data, sample, ready, batches, update, count, clear, used_data, plan, start, run, close,
        state_dict, load_state_dict
    """

    config = OPTIONS

    def __init__(
        self,
        cfg: Mapping | None = None,
        tb_logger: Any = None,
        exp_name: str = '.',
        seed: int | None = None,
        on_policy: bool | None = None,
        use_priority: bool | None = None,
        process_fn: Callable[[Batch, ReplayBuffer, np.ndarray], Any] | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._buffers: dict[str, Buffer] = {}
        self._options = read_options(cfg or {})
        self._caches: dict[str, Cache] = {}
        seeds = np.random.SeedSequence(seed).spawn(len(self._options))
        for (name, options), child in zip(self._options.items(), seeds):
            kind = options['type'] or ('on_policy' if on_policy else 'replay')
            if options['use_priority'] is None:
                options['use_priority'] = use_priority
            buffer = self._buffers[name] = BUFFER_REGISTRY.get(kind)(name, SimpleNamespace(**options), child)
            buffer.process_fn = process_fn
            if options['monitor']['log_freq']:
                buffer.log = BufferLog(buffer, options['monitor'], exp_name, tb_logger)
        self._only = next(iter(self._buffers.values())) if len(self._buffers) == 1 else None
        self._direct = self._only  # gets pushed data at once: the only buffer, unless it has a cache

    @property
    def buffer_name(self) -> list[str]:
        """Names of the buffers."""
        return list(self._buffers)

    @property
    def replay_start_size(self) -> int:
        """Rows that must be collected before the first sample (the largest of all buffers)."""
        return max(b.start_size for b in self._buffers.values())

    # ---- in
    def push_data(
        self, data: Batch | Mapping | Sequence[Mapping], buffer_name: Sequence[str] | str | None = None
    ) -> None:
        """
        Overview:
            Store rows: a Batch of n rows (columns as they are), one dict, or a list of dicts. An item of a list that is
            no dict is left out with a line in the log; anything else is a TypeError.
        Arguments:
            - buffer_name (:obj:`list[str] | None`): None means the ``'buffer_name'`` of the first row, or all buffers
        """
        if buffer_name is None and self._direct is not None:
            try:
                self._acquire()  # 0.08 us faster than a ``with``: row ``cart_add1`` of the data bench
                if self._direct.put(data):
                    return
            finally:
                self._release()
        rows, buffer_name = given_rows(data, buffer_name)
        for k, name in enumerate(self._buffers if buffer_name is None else as_names(buffer_name)):
            buffer = self._get(name)
            if k:  # the buffers share no objects (arrays are copied anyway)
                rows = tree.map(own_objects, rows)
            if name in self._caches:
                self._caches[name].push_data(Batch.cat([rows]), len(rows))
            else:
                self._store(buffer, [rows])

    def _store(self, buffer: Buffer, portion: list[Batch]) -> None:
        rows = portion[0] if len(portion) == 1 else Batch.cat(portion)
        with self._lock:
            buffer.push(rows._columns)

    # ---- out
    def sample(self, batch_size: int | Mapping[str, int], cur_learner_iter: int = 0, reuse: bool = False) -> Any:
        """
        Overview:
            A Batch of ``batch_size`` rows; with several buffers (or a dict of sizes) a dict of Batches; None when one
            of the buffers has not enough data.
        Arguments:
            - reuse (:obj:`bool`): give one of two alternating batches, valid until the next but one sample
        """
        if self._only is not None and not isinstance(batch_size, Mapping):
            batch_size = _size(batch_size)
            with self._lock:
                return self._only.sample(batch_size, cur_learner_iter, reuse)
        sizes = self._sizes(batch_size)
        with self._lock:
            if not all(self._get(name).ready(size, cur_learner_iter) for name, size in sizes.items()):
                return None
            return {name: self._get(name).sample(size, cur_learner_iter, reuse) for name, size in sizes.items()}

    def ready(self, batch_size: int | Mapping[str, int], cur_learner_iter: int = 0, samples: int = 1) -> bool:
        """
        Overview:
            Whether there is enough for so many samples of this size: ``replay_start_size``, ``min_sample_ratio`` and
            ``max_reuse`` are considered, and rows that are too old removed. ValueError if there can never be enough.
        """
        sizes = self._sizes(batch_size)
        with self._lock:
            return all(self._get(name).ready(n, cur_learner_iter, samples) for name, n in sizes.items())

    def batches(self, batch_size: int | Mapping[str, int], count: int, cur_learner_iter: int = 0) -> Iterator[Any]:
        """
        Overview:
            What a learner iterates. A replay buffer gives up to ``count`` samples; an on-policy buffer ``count`` epochs
            of shuffled minibatches and is empty from then on. A batch is valid until the next but one. With several
            buffers, or a dict of sizes, each is a dict of Batches; beside on-policy buffers a replay buffer gives as
            many samples as these have minibatches.
        """
        if self._only is not None and not isinstance(batch_size, Mapping):
            return self._locked(self._only.batches(_size(batch_size), count, cur_learner_iter))
        parts, buffers = {}, {name: (self._get(name), n) for name, n in self._sizes(batch_size).items()}
        rounds = any(buffer.own_rounds for buffer, _ in buffers.values())
        for name, (buffer, n) in buffers.items():
            most = sys.maxsize if rounds and not buffer.own_rounds else count
            parts[name] = self._locked(buffer.batches(n, most, cur_learner_iter))
        return (dict(zip(parts, batches)) for batches in zip(*parts.values()))

    def _locked(self, batches: Iterator) -> Iterator:
        """Batches made one by one: the lock is held while the next one is made, not while it is learned from."""
        while True:
            with self._lock:
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def update(self, info: Mapping | None) -> None:
        """
        Overview:
            New priorities: ``{'priority', 'replay_unique_id', 'replay_buffer_idx'}`` of equal length, or a dict of them
            by buffer name. Without a priority nothing happens; rows that were overwritten since are skipped.
        """
        if not info:
            return
        parts = info
        if info.get('priority') is not None:
            if missing := [key for key in UPDATE_KEYS if key not in info]:
                raise KeyError(f'update: {", ".join(missing)} missing beside priority')
            if self._only is not None:
                with self._lock:
                    self._only.update(info)
                return
            parts = by_buffer(info)
        for name, part in parts.items():
            if isinstance(part, Mapping) and part.get('priority') is not None:
                buffer = self._get(name)
                with self._lock:
                    buffer.update(part)

    def count(self, name: str | None = None) -> int:
        """Rows of one buffer; without a name the smallest count of all."""
        with self._lock:
            return self._get(name).count if name is not None else min(b.count for b in self._buffers.values())

    def used_data(self, name: str | None = None) -> dict | None:
        """One row that was removed because it had been used often enough, oldest first; None if there is none."""
        with self._lock:
            return (self._only if name is None and self._only is not None else self._get(name)).used_data()

    def clear(self, names: Sequence[str] | str | None = None) -> None:
        """Empty the named buffers, or all."""
        for name in as_names(names) if names is not None else list(self._buffers):
            buffer = self._get(name)
            if name in self._caches:
                self._caches[name].flush()
            with self._lock:
                buffer.clear()

    def plan(self, row: Mapping | Batch) -> dict[str, int]:
        """
        Overview:
            Bytes that every replay buffer will need for rows like this one; BufferMemoryError if one cannot fit.
            A push of the first rows checks the same.
        """
        sample = Batch.from_rows([row])
        return {name: buffer.plan(sample._columns) for name, buffer in self._buffers.items()}

    # ---- life
    def start(self) -> None:
        """Begin background work, if the config asks for any."""
        for name, options in self._options.items():
            if options['enable_cache'] and name not in self._caches:
                consume = partial(self._store, self._buffers[name])
                self._caches[name] = Cache(options['cache_maxlen'], options['timeout'], consume)
                self._caches[name].run()
                self._direct = None

    run = start

    def close(self) -> None:
        """End background work and close files. May be called twice."""
        caches, self._caches = self._caches, {}
        self._direct = self._only
        for cache in caches.values():
            cache.close()
        for buffer in self._buffers.values():
            if buffer.log is not None:
                buffer.log.close()

    def __enter__(self) -> BufferManager:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on exactly: contents, counters, generators. Loads with weights_only=True."""
        for cache in self._caches.values():
            cache.flush()
        with self._lock:
            buffers = {name: b.state_dict() for name, b in self._buffers.items()}
            logs = {name: b.log.state_dict() for name, b in self._buffers.items() if b.log is not None}
        return {'version': _VERSION, 'buffers': buffers, 'logs': logs}

    def load_state_dict(self, state: Mapping) -> None:
        """Put back what ``state_dict`` gave; the buffers must have the same names, kinds and sizes."""
        if state.get('version') != _VERSION:
            raise ValueError(f'saved buffers of version {state.get("version")}: this nervex reads version {_VERSION}')
        if set(state['buffers']) != set(self._buffers):
            raise ValueError(f'the saved buffers are {sorted(state["buffers"])}, these are {sorted(self._buffers)}')
        with self._lock:
            for name, buffer in self._buffers.items():
                buffer.load_state_dict(state['buffers'][name])
                if buffer.log is not None and name in state.get('logs', {}):
                    buffer.log.load_state_dict(state['logs'][name])

    def _sizes(self, batch_size: int | Mapping[str, int]) -> dict[str, int]:
        given = dict(batch_size) if isinstance(batch_size, Mapping) else dict.fromkeys(self._buffers, batch_size)
        return {name: _size(size) for name, size in given.items()}

    def _get(self, name: str | None) -> Buffer:
        if name not in self._buffers:
            raise UnknownNameError(unknown_name('buffer', str(name), self._buffers))
        return self._buffers[name]


def _size(batch_size: Any) -> int:
    if type(batch_size) is int and batch_size > 0:
        return batch_size
    if not isinstance(batch_size, (int, np.integer)) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(f'batch_size is a number of rows, at least 1, or a dict of them by buffer; got {batch_size!r}')
    return int(batch_size)


logger = logging.getLogger(__name__)


def given_rows(data: Any, buffer_name: Any) -> tuple[Batch, Any]:
    """Pushed data as a Batch, and the names of the buffers that it is for."""
    if isinstance(data, (Mapping, Row)) or (isinstance(data, Batch) and not has_length(data)):
        data = [data]
    if not isinstance(data, Batch):
        if not isinstance(data, Iterable) or isinstance(data, (str, bytes)):
            raise TypeError(
                f'push_data: got {data!r} of type {type(data).__name__}; rows are a Batch, a dict (one row) or a list '
                "of dicts: push_data({'obs': obs, 'action': action, ...})"
            )
        rows = []
        for item in data:
            if isinstance(item, (Mapping, Batch)):
                rows.append(item)
            else:
                logger.error('push_data: a row must be a dict, got %s: it is left out', type(item).__name__)
        with_priority = ['priority' in row for row in rows]
        if any(with_priority) and not all(with_priority):  # the others get the largest one so far
            rows = [row if has else {**dict(row.items()), 'priority': None} for row, has in zip(rows, with_priority)]
        data = Batch.from_rows(rows)
    if 'buffer_name' in data._columns:
        columns = dict(data._columns)
        named = columns.pop('buffer_name')[0]
        return Batch.of(columns), buffer_name if buffer_name is not None else named
    return data, buffer_name


def own_objects(column: Any) -> Any:
    """A column of objects that shares none of them; arrays as they are."""
    return copy.deepcopy(column) if isinstance(column, np.ndarray) and column.dtype.hasobject else column
