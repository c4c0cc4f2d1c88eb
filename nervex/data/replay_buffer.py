"""ReplayBuffer: steps in a ring that keeps the order of time, with stacking and derived next observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nervex.data.batch import Batch, Row, as_column, has_length
from nervex.data.columns import MISFITS, ColumnStore, rows_of
from nervex.data.flatten import flatten, unflatten
from nervex.data.index_source import IndexSource
from nervex.data.timeline import Timeline

RESERVED = ('obs', 'act', 'rew', 'done', 'obs_next', 'info', 'policy')
_STACKED = ('obs', 'obs_next')
_OPEN = ('info', 'policy')  # dicts whose keys may come and go
_SLOTS_AHEAD = 1 << 20  # slot numbers that are kept, so that extend() answers with a view of them


class ReplayBuffer:
    """
    Overview:
        A ring of ``size`` steps with the columns ``obs, act, rew, done, obs_next, info, policy`` and any others. A
        step lies in one slot; ``buf.obs`` is the whole column, ``buf[index]`` a Batch of the steps in these slots.
        Values are kept exactly, in the dtype of what was added.
    Arguments:
        - size (:obj:`int`): steps to keep
        - stack_num (:obj:`int`): with more than 1, ``obs`` and ``obs_next`` are read as stacks of the last steps of the
          same episode, the first step being repeated where the episode is too short
        - ignore_obs_next (:obj:`bool`): do not store ``obs_next``: it is the ``obs`` of the next step of the episode,
          and that of the step itself where there is none
        - sample_avail (:obj:`bool`): sample only steps that have a full stack in their episode
        - seed (:obj:`int | None`): of the sampling
    Interfaces:
        add, extend, update, sample, get, reset
    """

    _priorities: Any = None  # of the prioritized variant

    def __init__(
        self,
        size: int,
        stack_num: int = 1,
        ignore_obs_next: bool = False,
        sample_avail: bool = False,
        seed: int | None = None,
    ) -> None:
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f'{type(self).__name__}: size must be a number of steps >= 1, got {size!r}')
        if not isinstance(stack_num or 1, (int, np.integer)) or (stack_num or 1) < 1:
            raise ValueError(f'{type(self).__name__}: stack_num is a number of steps, at least 1, got {stack_num!r}')
        self._options = {
            'stack_num': int(stack_num or 1),
            'ignore_obs_next': ignore_obs_next,
            'sample_avail': sample_avail,
        }
        self._source = IndexSource(seed)
        self._set_up(int(size))

    def _set_up(self, capacity: int) -> None:
        self._store = ColumnStore(capacity, type(self).__name__)
        self._time = Timeline(capacity)
        # where nothing but the five plain columns is stored, and by one env: what writes a step, and many
        self._write_step: Callable | None = None
        self._write_steps: Callable | None = None
        self._slots_ahead = np.zeros(0, dtype=np.int64)

    @property
    def maxsize(self) -> int:
        """Steps that are kept."""
        return self._store.capacity

    @property
    def stack_num(self) -> int:
        """Steps in a stack."""
        return self._options['stack_num']

    def __len__(self) -> int:
        return self._time.size

    # ---- in
    def add(
        self,
        obs: Any,
        act: Any = None,
        rew: Any = None,
        done: Any = None,
        obs_next: Any = None,
        info: Any = None,
        policy: Any = None,
        *,
        env_id: Any = None,
        **others: Any,
    ) -> int:
        """
        Overview:
            Add one step; gives its slot. A Batch or dict as the only argument is one step too, or many if it has a
            length: the same as ``extend``.
        Arguments:
            - env_id (:obj:`Any`): which env it is of, when several write at once
        """
        write = self._write_step
        if write is not None and env_id is None and not (info or policy or others):
            time = self._time
            count = time.count
            slot = count % time.capacity
            try:
                if write(slot, obs, act, rew, done, obs_next):
                    time.count = count + 1
                    if self._priorities is not None:
                        self._priorities.push(slot, 1)
                    return slot
            except MISFITS:  # the checked way finds out what does not fit
                pass
        if act is None and rew is None and done is None and isinstance(obs, (Batch, Mapping)) and _is_step(obs):
            row = dict(obs.items())
            many = isinstance(obs, Batch) and not isinstance(obs, Row) and has_length(obs)
            if many:
                return int(self.extend(obs, env_id)[-1])
        else:
            row = {
                'obs': obs,
                'act': act,
                'rew': rew,
                'done': done,
                'obs_next': obs_next,
                'info': info,
                'policy': policy,
                **others,
            }
            row = {name: value for name, value in row.items() if value is not None}
        if env_id is None:
            env_id = row.pop('env_id', None)
        row = {name: as_column(value) for name, value in row.items()}  # lists become arrays
        return int(self._append(Batch.from_rows([row]), None if env_id is None else np.array([env_id]))[0])

    def extend(self, batch: Batch | Mapping, env_id: Any = None) -> np.ndarray:
        """
        Overview:
            Add many steps in their order; gives their slots.
        Arguments:
            - batch (:obj:`Batch`): columns of equal length; without ``env_id`` they are consecutive steps of one env
            - env_id (:obj:`np.ndarray | None`): env of each step; a column ``env_id`` of the batch serves as well
        """
        write = self._write_steps
        if write is not None and env_id is None and type(batch) is Batch:
            time = self._time
            count = time.count
            start = count % time.capacity
            try:
                if n := write(batch._columns, start):
                    time.count = count + n
                    if self._priorities is not None:
                        self._priorities.push(start, n)
                    slots = self._slots_ahead[start : start + n]
                    return slots if len(slots) == n else np.arange(start, start + n)
            except MISFITS:  # the checked way finds out what does not fit
                pass
        batch = Batch(dict(batch.items()))
        len(batch)
        if env_id is None and 'env_id' in batch:
            env_id = batch.pop('env_id')
        return self._append(batch, None if env_id is None else np.asarray(env_id).reshape(-1))

    def _append(self, batch: Batch, env_id: np.ndarray | None) -> np.ndarray:
        columns = {name: column for name, column in batch.items() if not (name in _OPEN and column is None)}
        if self._options['ignore_obs_next']:
            columns.pop('obs_next', None)
        n = rows_of(columns)
        if 'done' not in columns and ('terminated' in columns or 'truncated' in columns):
            parts = [np.asarray(columns[k], dtype=bool) for k in ('terminated', 'truncated') if k in columns]
            columns['done'] = np.logical_or.reduce(parts)
        if env_id is not None and len(env_id) != n:
            raise ValueError(f'{type(self).__name__}: {n} steps came with {len(env_id)} env ids')
        self._align(columns, n)
        columns = {name: columns[name] for name in sorted(columns, key=_position)}
        self._make_room(n)
        done = np.asarray(columns['done']).reshape(n, -1).any(axis=1) if 'done' in columns else np.zeros(n, dtype=bool)
        capacity, parts, time = self.maxsize, [], self._settled()
        try:
            for start in range(0, n, capacity):  # of more steps than fit, the last ones stay
                part = {name: column[start : start + capacity] for name, column in columns.items()}
                rows = slice(start, start + capacity)
                self._write(part)
                parts.append(time.add(done[rows], None if env_id is None else env_id[rows]))
        finally:  # also where it has failed: a column may have got another dtype
            self._choose_writers()
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _settled(self) -> Timeline:
        """The order of time, with all steps that were added in it."""
        if self._write_step is not None:
            self._time.settle(self._store.arrays['done'])
        return self._time

    def _choose_writers(self) -> None:
        """To be called whenever the store's arrays may be other ones."""
        store = self._store
        plain = tuple(store.arrays) == RESERVED[:5] and not self._time.linked
        self._write_step, self._write_steps = (store.fast_values, store.fast_block) if plain else (None, None)
        ahead = min(self.maxsize, _SLOTS_AHEAD) if plain else 0
        if len(self._slots_ahead) != ahead:
            self._slots_ahead = np.arange(ahead)
            self._slots_ahead.flags.writeable = False

    def _write(self, columns: dict) -> None:
        start = self._time.head
        try:
            n = self._store.write(columns, start)
        except Exception:
            if len(self) == self.maxsize > 1:  # the oldest step may be half overwritten: replace it by its neighbour
                self._store.copy_row((start + 1) % self.maxsize, start)
                self._time.isolate(start)
            raise
        if self._priorities is not None:
            self._priorities.push(start, n)

    def _make_room(self, n: int) -> None:
        """A ring has room for everything."""

    def _align(self, columns: dict, n: int) -> None:
        """Give ``info`` and ``policy`` the keys that they have in the store; where a key is missing it is zero."""
        flat = flatten({k: v for k, v in columns.items() if k in _OPEN})
        stored = {
            name: array
            for name, array in self._store.arrays.items()
            if (name[0] if type(name) is tuple else name) in _OPEN
        }
        if flat.keys() == stored.keys() or not self._store.arrays:
            return
        for name in stored.keys() - flat.keys():
            array = stored[name]
            flat[name] = np.zeros((n, *array.shape[1:]), array.dtype) if array.dtype != object else np.full(n, None)
        for name in flat.keys() - stored.keys():
            self._store.add_column(name, np.asarray(flat[name]))
        for name in _OPEN:
            columns.pop(name, None)
        columns.update(unflatten(flat))

    def update(self, other: ReplayBuffer) -> np.ndarray:
        """Append the steps of another buffer in their order of time; gives the slots that they got."""
        if not len(other):
            return np.zeros(0, dtype=np.int64)
        theirs, order = other._settled(), other._time.order()
        if theirs.linked or self._time.linked:
            parts, labels = [order], [theirs.labels()]
        else:  # one env each: trajectory by trajectory, so that no links are needed
            parts = np.split(order, np.flatnonzero(theirs.previous(order) == order)[1:])
            labels = [None] * len(parts)
        slots = []
        for part, label in zip(parts, labels):
            self._settled().cut()  # what is here already is not continued
            slots.append(self._append(Batch.of(other._store.gather(part)), label))
        self._settled().cut()
        return np.concatenate(slots)

    def reset(self) -> None:
        """Forget all steps; the memory is kept."""
        self._time = Timeline(self.maxsize)

    # ---- out
    def sample_indices(self, batch_size: int) -> np.ndarray:
        """Slots of ``batch_size`` random steps; of all steps in their order of time if it is 0."""
        if batch_size < 0:
            raise ValueError(f'{type(self).__name__}: batch_size must be at least 0, got {batch_size}')
        if batch_size == 0 or self._options['sample_avail']:
            slots = self._time.order()
            if self._options['sample_avail'] and self.stack_num > 1:
                oldest = self._settled().stack(slots, self.stack_num)[:, 1]
                slots = slots[self._time.previous(oldest) != oldest]
            if batch_size == 0:
                return slots
            if len(slots):
                return slots[self._source.rng.integers(0, len(slots), batch_size)]
        if not len(self):
            raise ValueError(f'{type(self).__name__}: nothing to sample from, the buffer is empty')
        return self._source.draw(batch_size, self._time.size).copy()

    def sample(self, batch_size: int) -> tuple[Batch, np.ndarray]:
        """Random steps and their slots: ``batch == buf[slots]``. ``batch_size`` 0 gives all, in their order of time."""
        slots = self.sample_indices(batch_size)
        return self._read(slots), slots

    def __getitem__(self, index: Any) -> Batch:
        """The steps in these slots; an int gives one step. ``buf['obs']`` is the column, like ``buf.obs``."""
        if isinstance(index, str):
            return self._column(index)
        slots = self._slots(index)
        return self._read(slots) if slots.ndim else self._read(slots.reshape(1))[0]

    def _read(self, slots: np.ndarray) -> Batch:
        stack, derive = self.stack_num, 'obs_next' not in self._store and 'obs' in self._store
        columns = self._store.gather(slots)
        if stack > 1 or derive:
            if derive:
                columns['obs_next'] = self.get(slots, 'obs_next')
            if stack > 1:
                columns['obs'] = self.get(slots, 'obs')
                if not derive:
                    columns['obs_next'] = self.get(slots, 'obs_next')
        for name in _OPEN:
            if name not in columns:
                columns[name] = Batch()
        return Batch.of(columns)

    def get(self, index: Any, key: str, stack_num: int | None = None) -> Any:
        """
        Overview:
            One column of the steps in these slots, stacked if the buffer stacks.
        Shapes:
            - column: (*index, *step), or (*index, stack_num, *step) with ``stack_num`` above 1
        """
        slots = self._slots(index)
        length = self.stack_num if stack_num is None else stack_num
        if key == 'obs_next' and 'obs_next' not in self._store:
            key, slots = 'obs', self._settled().next(slots)
        if key in _OPEN and key not in self._store:
            return Batch()
        if length > 1:
            slots = self._settled().stack(slots, length)
        return self._store.read(key, slots)

    def _slots(self, index: Any) -> np.ndarray:
        size = len(self)
        if isinstance(index, slice):
            return np.arange(*index.indices(size))
        index = np.asarray(index)
        if index.dtype == bool:
            if index.shape != (size,):
                raise IndexError(f'{type(self).__name__}: a mask needs {size} values, got shape {index.shape}')
            return np.flatnonzero(index)
        if index.size == 0:
            return index.astype(np.int64)
        if index.dtype.kind not in 'iu':
            raise TypeError(f'{type(self).__name__}: an index is a number, a slice, a mask or an array of numbers')
        if index.min() < -size or index.max() >= size:
            raise IndexError(f'{type(self).__name__}: index {index.min()} .. {index.max()} with {size} steps')
        return np.where(index < 0, index + size, index)

    def _column(self, name: str) -> Any:
        if name in _OPEN and name not in self._store:
            return Batch()
        return self._store.column(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        try:
            return self._column(name)
        except KeyError as e:
            raise AttributeError(str(e.args[0])) from None

    def __repr__(self) -> str:
        names = {*self._store.names(), *_OPEN} if len(self) else set()
        body = repr(Batch.of({name: self._column(name) for name in sorted(names)}))
        return type(self).__name__ + body[len('Batch') :]

    def __getstate__(self) -> dict[str, Any]:
        return {
            'options': self._options,
            'capacity': self.maxsize,
            'time': self._settled(),
            'source': self._source.state_dict(),
            'store': self._store.state_dict(slice(0, len(self))),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._options = state['options']
        self._source = IndexSource()
        self._source.load_state_dict(state['source'])
        self._set_up(state['capacity'])
        self._time = state['time']
        self._store.load_state_dict(state['store'], slice(0, len(self)))
        self._choose_writers()


def _position(name: str) -> int:
    return RESERVED.index(name) if name in RESERVED else len(RESERVED)


def _is_step(obs: Batch | Mapping) -> bool:
    """Whether it is a step itself and not just a nested observation."""
    return any(name in obs for name in ('obs', 'act', 'rew', 'done'))
