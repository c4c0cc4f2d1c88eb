"""What a buffer draws: random slots, and the Batch of their rows with the columns that tell where these come from."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch
from nervex.data.columns import numpy_column
from nervex.data.names import SAMPLE_COLUMNS
from nervex.utils import tree

_INT64 = np.dtype(np.int64)
_BLOCK = 8192
_NEITHER = None, None


class IndexSource:
    """
    Overview:
        Independent uniform integers below a bound, and fractions in [0, 1). Fractions, and integers while their bound
        stays the same (a full ring), come from blocks drawn ahead (a draw of 32 takes 0.2 in place of 2.5 us: row
        ``cart_s32`` of the data bench); the state, blocks included, can be saved, so that a resumed run draws the same
        numbers. What ``draw`` and ``fractions`` answer may be a view of a block: do not change it.
    """

    def __init__(self, seed: Any = None) -> None:
        self.rng = np.random.default_rng(seed)
        self._bound, self._block, self._next = -1, np.zeros(_BLOCK, dtype=np.int64), _BLOCK
        self._fractions, self._used = np.zeros(_BLOCK), _BLOCK

    def draw(self, n: int, bound: int) -> np.ndarray:
        """``n`` integers in [0, bound)."""
        start = self._next
        end = start + n
        if bound == self._bound and end <= _BLOCK:
            self._next = end
            return self._block[start:end]
        if n > _BLOCK // 4 or bound != self._bound:
            self._bound = bound  # the block is kept ahead from the second draw with the same bound on
            self._next = _BLOCK
            return self.rng.integers(0, bound, n)
        self._block = self.rng.integers(0, bound, _BLOCK)
        self._next = n
        return self._block[:n]

    def fractions(self, n: int) -> np.ndarray:
        """``n`` numbers in [0, 1)."""
        start = self._used
        end = start + n
        if end > _BLOCK:
            if n > _BLOCK // 4:
                return self.rng.random(n)
            self._fractions, start, end = self.rng.random(_BLOCK), 0, n
        self._used = end
        return self._fractions[start:end]

    def state_dict(self) -> dict[str, Any]:
        """The generator, and the blocks with the places up to which they were given out."""
        return {
            'generator': self.rng.bit_generator.state,
            'at': [self._bound, self._next, self._used],
            'integers': torch.from_numpy(self._block.copy()),
            'fractions': torch.from_numpy(self._fractions.copy()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the draws from where ``state_dict`` was called."""
        self.rng.bit_generator.state = state['generator']
        self._bound, self._next, self._used = state['at']
        self._block, self._fractions = (state[name].numpy().copy() for name in ('integers', 'fractions'))


class UniqueIds(np.ndarray):
    """
    Overview:
        Numbers of stored items as an int64 array; a single one reads as ``'<buffer>_<n>'``, so that ids of several
        buffers can be told apart when they are mixed.
    """

    buffer_name = ''

    @staticmethod
    @cache
    def kind(buffer_name: str) -> type[UniqueIds]:
        """The class for one buffer, ``numbers.view`` of it. Its arrays need not be given the name one by one."""
        return type('UniqueIds', (UniqueIds,), {'buffer_name': buffer_name})

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return found if isinstance(found, np.ndarray) else f'{self.buffer_name}_{found}'

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]
        return iter(self.tolist())

    def tolist(self) -> list[str]:  # type: ignore[override]
        """The ids as strings."""
        return [f'{self.buffer_name}_{n}' for n in self.view(np.ndarray).tolist()]

    def __repr__(self) -> str:
        return f'UniqueIds({self.tolist()})'

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return _ids, (np.array(self.view(np.ndarray)), self.buffer_name)


def _ids(numbers: np.ndarray, buffer_name: str) -> np.ndarray:
    return numbers.view(UniqueIds.kind(buffer_name))


class Sampled(Batch):
    """
    Overview:
        A sample. The columns in ``SAMPLE_COLUMNS`` are made when somebody asks for them (by name, or by reading rows),
        because most learners never do. ``keys()`` and ``to_torch()`` show those that exist.
    """

    __slots__ = ('_describe', '_tensors')

    @classmethod
    def drawn(cls, columns: dict[str, Any], describe: tuple, tensors: dict[str, tuple] | None = None) -> Any:
        """
        Overview:
            A sample of these columns.
        Arguments:
            - describe (:obj:`tuple`): ``describe[0](*describe[1:])`` gives the additional columns
            - tensors (:obj:`dict | None`): column name -> (column, tensor over its memory), of reused outputs
        """
        self = _new(cls)
        _set_columns(self, columns)
        _set_describe(self, describe)
        _set_tensors(self, tensors)
        return self

    def additional(self) -> dict[str, Any]:
        """The additional columns, without making them a part of the sample."""
        made = self._describe[0](*self._describe[1:]) if self._describe is not None else {}
        return made | {name: column for name, column in self._columns.items() if name in SAMPLE_COLUMNS}

    def describe(self) -> Sampled:
        """Make all additional columns a part of the sample."""
        if self._describe is not None:
            self._columns.update(self.additional())
            _set_describe(self, None)
        return self

    def to_torch(self, device: torch.device | str | None = None) -> dict[str, Any]:
        """A plain nested dict of tensors on ``device``; float64 arrays become float32, object columns stay."""
        ready = self._tensors
        if ready is None or device not in (None, 'cpu'):
            return _to_torch(self, device)
        out = {}
        for name, column in self._columns.items():
            source, tensor = ready.get(name, _NEITHER)
            out[name] = tensor if source is column else Batch.of({name: column}).to_torch()[name]
        return out

    def __getattr__(self, name: str) -> Any:
        if name in ('_describe', '_tensors'):  # a slot that was never set: the sample was cut, joined or copied
            return None
        return super().__getattr__(name) if name in self._columns or name not in SAMPLE_COLUMNS else self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns or (name in SAMPLE_COLUMNS and name in self.describe()._columns)

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            columns = self._columns
            return columns[key] if key in columns or key not in SAMPLE_COLUMNS else self.describe()._columns[key]
        return Batch.of(self.describe()._columns)[key]

    def __reduce__(self) -> tuple:
        return Batch.of, (dict(self.describe()._columns),)

    def get(self, name: str, default: Any = None) -> Any:
        """A column, or ``default`` where there is none of that name."""
        return self[name] if name in self else default

    def copy(self) -> Batch:
        """A plain Batch over the same columns, additional ones included."""
        return Batch.of(self.describe()._columns).copy()


_new, _to_torch = object.__new__, Batch.to_torch
_set_columns = Batch._columns.__set__  # type: ignore[attr-defined, misc]
_set_describe = Sampled._describe.__set__  # type: ignore[attr-defined]
_set_tensors = Sampled._tensors.__set__  # type: ignore[attr-defined]
tree.register(Sampled, lambda sample: sample._columns, Batch.of)


def described(
    name: str, numbers: np.ndarray, slots: np.ndarray, uses: np.ndarray, columns: Mapping, cur_learner_iter: int
) -> dict[str, Any]:
    """The additional columns of a sample of a buffer, whose rows have no priorities."""
    n, born = len(slots), columns.get('collect_iter')
    return {
        'IS': np.ones(n, dtype=np.float32),
        'priority': np.ones(n),
        'replay_unique_id': _ids(numbers, name),
        'replay_buffer_idx': slots.copy(),
        'use': uses,
        'staleness': np.zeros(n, np.int64) if born is None else cur_learner_iter - collected_at(born),
    }


def collected_at(column: Any) -> np.ndarray:
    """The learner iteration in which each row was collected; of a sequence, that has one a step, the earliest."""
    column = numpy_column(column)
    if column.dtype == object:
        steps = [[k for k in np.ravel(np.array(row, dtype=object)) if k is not None] for row in column]
        return np.array([min(row, default=0) for row in steps])
    return column if column.ndim == 1 else column.reshape(len(column), -1).min(axis=1)


def item_numbers(ids: Any, buffer_name: str) -> np.ndarray:
    """The numbers in ids of one buffer, given as UniqueIds, integers (array, tensor, list) or strings."""
    if isinstance(ids, (UniqueIds, torch.Tensor)) or (isinstance(ids, np.ndarray) and ids.dtype.kind == 'i'):
        return integers(ids)
    numbers = []
    for one in ids:
        owner, _, number = one.rpartition('_') if isinstance(one, str) else (buffer_name, '', int(one))
        if owner != buffer_name or not str(number).isdigit():
            raise ValueError(f"'{one}' is not the id of a row of buffer '{buffer_name}'; ids read '{buffer_name}_<n>'")
        numbers.append(int(number))
    return np.array(numbers, dtype=np.int64)


def integers(values: Any) -> np.ndarray:
    """Numbers from a list, an array or a tensor as a flat int64 array."""
    if isinstance(values, np.ndarray) and values.dtype is _INT64 and values.ndim == 1 and values.flags.carray:
        return values if type(values) is np.ndarray else values.view(np.ndarray)
    return np.asarray(numpy_column(values), dtype=np.int64).reshape(-1)


def separate_objects(columns: Mapping | Batch, slots: np.ndarray, every: bool) -> None:
    """
    Overview:
        Let rows of a sample that come from one slot share no objects: all but the first get copies.
    Arguments:
        - every (:obj:`bool`): copy the first ones too, so that no object is shared with the buffer either
    """
    copied = np.ones(len(slots), dtype=bool)
    if not every:
        copied[np.unique(slots, return_index=True)[1]] = False
    for column in tree.leaves(columns):
        if isinstance(column, np.ndarray) and column.dtype == object:
            for k in np.flatnonzero(copied).tolist():
                column[k] = copy.deepcopy(column[k])
