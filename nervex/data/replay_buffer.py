"""ReplayBuffer: steps in a ring that keeps the order of time, with stacking and derived next observations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nervex.data.batch import Batch, has_length
from nervex.data.columns import as_column
from nervex.data.priority import Priorities, checked_priorities
from nervex.data.ring import Ring, rows_of
from nervex.data.sampling import IndexSource
from nervex.data.timeline import Timeline
from nervex.utils import tree

RESERVED = ('obs', 'act', 'rew', 'done', 'obs_next', 'info', 'policy')
_OF_ACTORS = {'action': 'act', 'reward': 'rew', 'next_obs': 'obs_next'}
_OPEN = ('info', 'policy')  # dicts whose keys may come and go


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
        - seed (:obj:`int | None`): of the sampling
    Interfaces:
        add, extend, update, sample, get, prev, next, reset, over
    """

    _priorities: Priorities | None = None  # of the prioritized variant
    _grows = False  # whether it keeps everything, also rows that differ in shape

    def __init__(self, size: int, stack_num: int = 1, ignore_obs_next: bool = False, seed: int | None = None) -> None:
        for name, value in (('size', size), ('stack_num', stack_num or 1)):
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f'{type(self).__name__}: {name} is a number of steps, at least 1, got {value!r}')
        self.stack_num = int(stack_num or 1)
        self._ignore_obs_next = ignore_obs_next
        self._source, self._ring = IndexSource(seed), self._new_ring(int(size))
        self._plain = False  # whether the five plain columns are all that is stored
        self.reset()

    @classmethod
    def over(cls, ring: Ring) -> ReplayBuffer:
        """A view of the rows of another buffer, in their order of time: to be read, not added to."""
        self = cls(1)
        self._ring, self._time = ring, Timeline(ring.capacity)
        self._time.count = max(ring.first, ring.clock[0] - ring.capacity)
        return self

    def _new_ring(self, size: int) -> Ring:
        return Ring(size, type(self).__name__, ragged=self._grows, wraps=not self._grows)

    @property
    def maxsize(self) -> int:
        """Steps that are kept."""
        return self._ring.capacity

    def __len__(self) -> int:
        return min(self._ring.clock[0], self._ring.capacity)

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
        if self._plain and env_id is None and not (info or policy or others):
            slot = self._ring.put_values(obs, act, rew, done, obs_next)
            if slot >= 0:
                return slot
        if act is None and rew is None and done is None and isinstance(obs, (Batch, Mapping)) and _is_step(obs):
            if isinstance(obs, Batch) and has_length(obs):
                return int(self.extend(obs, env_id)[-1])
            row = dict(obs.items())
        else:
            given = {**dict(zip(RESERVED, (obs, act, rew, done, obs_next, info, policy))), **others}
            row = {name: value for name, value in given.items() if value is not None}
        if env_id is None:
            env_id = row.pop('env_id', None)
        row = {name: as_column(value) for name, value in row.items()}  # lists become arrays
        return int(self._append(Batch.from_rows([row]), None if env_id is None else np.array([env_id]))[0])

    def extend(self, batch: Batch | Mapping, env_id: Any = None) -> np.ndarray:
        """
        Overview:
            Add many steps in their order; gives their slots. Whole episodes one after the other, as an actor gives
            them that collects by episodes, are such steps too, under the names ``action``, ``reward``, ``next_obs``.
        Arguments:
            - batch (:obj:`Batch`): columns of equal length; without ``env_id`` they are consecutive steps of one env
            - env_id (:obj:`np.ndarray | None`): env of each step; a column ``env_id`` of the batch serves as well
        """
        if self._plain and env_id is None and type(batch) is Batch and (n := self._ring.put(batch)):
            start = (self._ring.clock[0] - n) % self._ring.capacity
            return self._time.slots[start : start + n]
        batch = Batch(dict(batch.items()))
        len(batch)
        if env_id is None and 'env_id' in batch:
            env_id = batch.pop('env_id')
        return self._append(batch, None if env_id is None else np.asarray(env_id).reshape(-1))

    def _append(self, batch: Batch, env_id: np.ndarray | None) -> np.ndarray:
        columns = {name: column for name, column in batch.items() if not (name in _OPEN and column is None)}
        if 'act' not in columns and 'action' in columns:  # samples of an actor
            columns = {_OF_ACTORS.get(name, name): column for name, column in columns.items()}
        if self._ignore_obs_next:
            columns.pop('obs_next', None)
        n, ring = rows_of(columns), self._ring
        if 'done' not in columns and ('terminated' in columns or 'truncated' in columns):
            parts = [np.asarray(columns[k], dtype=bool) for k in ('terminated', 'truncated') if k in columns]
            columns['done'] = np.logical_or.reduce(parts)
        if env_id is not None and len(env_id) != n:
            raise ValueError(f'{type(self).__name__}: {n} steps came with {len(env_id)} env ids')
        time, start = self._settle(), ring.clock[0]
        if self._grows and start + n > ring.capacity:
            time.grow(max(2 * ring.capacity, start + n))
            ring.grow(time.capacity)
        self._align(columns, n)
        try:
            ring.append({name: columns[name] for name in sorted(columns, key=_position)})
        except BaseException:
            time.isolate(ring.mend(n))
            raise
        finally:
            self._plain = tuple(ring.arrays) == RESERVED[:5]
        self._settle(env_id)
        return (start + np.arange(n)) % ring.capacity

    def _settle(self, env_id: np.ndarray | None = None) -> Timeline:
        """
        Overview:
            Bring the steps that were added since the last call into the order of time, and their priorities.
        Arguments:
            - env_id (:obj:`np.ndarray | None`): env of each of them; None: all of one env
        """
        time, end = self._time, self._ring.clock[0]
        n = min(end - time.count, self.maxsize)
        if n:
            slots, done = np.arange(end - n, end) % self.maxsize, self._ring.arrays.get('done')
            ends: Any = np.zeros(n, bool) if done is None else done[slots].astype(bool).reshape(n, -1).any(axis=1)
            if env_id is None and 'env_id' in self._ring.arrays:  # of a view
                env_id = self._ring.arrays['env_id'][slots]
            time.add(end - n, ends, None if env_id is None else env_id[-n:])
            if self._priorities is not None:
                self._priorities.add(slots)
        return time

    def _align(self, columns: dict, n: int) -> None:
        """Give ``info`` and ``policy`` the keys that they have in the store; where a key is missing it is zero."""
        ring = self._ring
        if not ring.arrays:
            return
        given = dict(tree.zip({name: columns.pop(name, {}) for name in _OPEN}))
        stored = {name: array for name, array in ring.arrays.items() if type(name) is tuple and name[0] in _OPEN}
        for name in given.keys() - stored.keys():
            ring.add_column(name, np.asarray(given[name]))
        for name in stored.keys() - given.keys():
            array = stored[name]
            given[name] = np.zeros((n, *array.shape[1:]), array.dtype) if array.dtype != object else np.full(n, None)
        columns.update(tree.from_paths(given.items()))

    def update(self, other: ReplayBuffer) -> np.ndarray:
        """Append the steps of another buffer in their order of time; gives the slots that they got."""
        if not len(other):
            return np.zeros(0, dtype=np.int64)
        theirs = other._settle()
        self._settle().cut()  # what is here already is not continued
        slots = self._append(Batch.of(other._ring.gather(theirs.order())), theirs.labels())
        self._time.cut()
        return slots

    def reset(self) -> None:
        """Forget all steps; the memory is kept."""
        self._ring.restart()
        self._time = Timeline(self.maxsize)

    # ---- out
    def sample_indices(self, batch_size: int) -> np.ndarray:
        """Slots of ``batch_size`` random steps; of all steps in their order of time if it is 0."""
        if batch_size < 0:
            raise ValueError(f'{type(self).__name__}: batch_size must be at least 0, got {batch_size}')
        if batch_size == 0:
            return self._settle().order()
        if not len(self):
            raise ValueError(f'{type(self).__name__}: nothing to sample from, the buffer is empty')
        return self._source.draw(batch_size, len(self)).copy()

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
        columns = self._ring.gather(slots)
        derived = 'obs' in columns and not columns.keys() & {'obs_next', 'next_obs'}
        for name in ('obs', 'obs_next'):
            if (self.stack_num > 1 and name in columns) or (name == 'obs_next' and derived):
                columns[name] = self.get(slots, name)
        for name in _OPEN:
            columns.setdefault(name, Batch())
        return Batch.of(columns)

    def prev(self, index: Any) -> np.ndarray:
        """Slots of the steps before these in their episodes; of a first step its own."""
        return self._settle().before[self._slots(index)].astype(np.int64)

    def next(self, index: Any) -> np.ndarray:
        """Slots of the steps that follow these in their episodes; of a last step its own."""
        return self._settle().after[self._slots(index)].astype(np.int64)

    def get(self, index: Any, key: str, stack_num: int | None = None) -> Any:
        """
        Overview:
            One column of the steps in these slots, stacked if the buffer stacks.
        Shapes:
            - column: (*index, *step), or (*index, stack_num, *step) with ``stack_num`` above 1
        """
        slots = self._slots(index)
        length = self.stack_num if stack_num is None else stack_num
        if key == 'obs_next' and 'obs_next' not in self._ring:
            key, slots = 'obs', self._settle().after[slots]
        if length > 1:
            slots = self._settle().stack(slots, length)
        return self._column(key, slots)

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

    def _column(self, name: str, slots: np.ndarray | None = None) -> Any:
        return Batch() if name in _OPEN and name not in self._ring else self._ring.column(name, slots)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        try:
            return self._column(name)
        except KeyError as e:
            raise AttributeError(str(e.args[0])) from None

    def __repr__(self) -> str:
        names = {*self._ring.names(), *_OPEN} if len(self) else set()
        body = repr(Batch.of({name: self._column(name) for name in sorted(names)}))
        return type(self).__name__ + body[len('Batch') :]

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return {**self.__dict__, '_source': self._source.state_dict(), '_ring': self._ring.state_dict(len(self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._source, self._ring = IndexSource(), self._new_ring(self._time.capacity)
        self._source.load_state_dict(state['_source'])
        self._ring.load_state_dict(state['_ring'])


class PrioritizedReplayBuffer(ReplayBuffer):
    """
    Overview:
        Samples step i with probability p_i^alpha / sum_j p_j^alpha. Samples carry the column ``weight``: the importance
        sampling weights (N P_i)^-beta, divided by the largest one of all stored steps. A priority of 0 counts as 0.01.
    Arguments:
        - alpha, beta (:obj:`float`): the exponents above
        - anneal_step (:obj:`float`): samples after which beta has gone up to 1; 0 leaves it
    """

    def __init__(
        self, size: int, alpha: float = 0.6, beta: float = 0.4, anneal_step: float = 0, **options: Any
    ) -> None:
        for name, value in (('alpha', alpha), ('beta', beta)):
            if not 0 <= value < math.inf:
                raise ValueError(f'PrioritizedReplayBuffer: {name} must be finite and at least 0, got {value}')
        self._options = dict(alpha=alpha, beta=beta, anneal_step=anneal_step)
        super().__init__(size, **options)

    def add(self, *step: Any, weight: float | None = None, **more: Any) -> int:
        """Add one step, with a priority of its own (``weight``) or the largest one so far. Otherwise as always."""
        slot = super().add(*step, **more)
        if weight is not None:
            self.update_weight([slot], [weight])
        return slot

    def sample_indices(self, batch_size: int) -> np.ndarray:
        """Slots of steps drawn by priority; of all steps in their order of time if ``batch_size`` is 0."""
        return self._draw(batch_size)[0] if batch_size > 0 and len(self) else super().sample_indices(batch_size)

    def sample(self, batch_size: int) -> tuple[Batch, np.ndarray]:
        """Steps drawn by priority and their slots; all steps in their order of time if ``batch_size`` is 0."""
        if batch_size <= 0 or not len(self):
            return super().sample(batch_size)
        slots, weight = self._draw(batch_size)
        return self._read(slots, weight), slots

    def _draw(self, batch_size: int) -> tuple[np.ndarray, ...]:
        self._settle()
        return self._priorities.draw(self._source.fractions(batch_size), self._ring.clock[0], self._uses)[:2]

    def _read(self, slots: np.ndarray, weight: np.ndarray | None = None) -> Batch:
        self._settle()
        batch = super()._read(slots)
        batch._columns['weight'] = self._priorities.importance(slots) if weight is None else weight
        return batch

    def update_weight(self, index: Any, new_weight: Any) -> None:
        """New priorities for the steps in these slots, e.g. the size of their TD errors."""
        slots = self._slots(index).reshape(-1)
        given = [new_weight] if np.ndim(new_weight) == 0 else new_weight
        priority = checked_priorities(given, lambda k: f'step {slots[k]}', 'update_weight')
        if len(priority) != len(slots):
            raise ValueError(f'update_weight: {len(priority)} priorities for {len(slots)} steps')
        self._settle()
        self._priorities.set(slots, priority)

    def reset(self) -> None:
        """Forget all steps; the memory is kept."""
        super().reset()
        self._priorities: Priorities = Priorities(self.maxsize, **self._options)
        self._uses = np.zeros(self.maxsize, np.int32)  # how often each slot was drawn

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_priorities': self._priorities.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._priorities = Priorities(self.maxsize, **self._options)
        self._priorities.load_state_dict(state['_priorities'])


class ListReplayBuffer(ReplayBuffer):
    """
    Overview:
        Keeps every step: it grows as needed, like a list, in the order of time. For rounds of data that are used up and
        forgotten (``reset``). ``size`` is only the room that it starts with. Rows may differ in shape: a column becomes
        one of objects then.
    """

    _grows = True

    def __init__(self, size: int = 256, **options: Any) -> None:
        super().__init__(size, **options)


def _position(name: str) -> int:
    return RESERVED.index(name) if name in RESERVED else len(RESERVED)


def _is_step(obs: Batch | Mapping) -> bool:
    """Whether it is a step itself and not just a nested observation."""
    return any(name in obs for name in ('obs', 'act', 'rew', 'done'))
