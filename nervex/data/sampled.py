"""Sampled: a Batch from a buffer, with the columns that tell where its rows come from."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch, Row, numpy_column
from nervex.data.names import SAMPLE_COLUMNS
from nervex.utils import tree

_INT64 = np.dtype(np.int64)


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
        """The class for one buffer. It has the name, so that its arrays need not be given it one by one."""
        return type('UniqueIds', (UniqueIds,), {'buffer_name': buffer_name})

    @staticmethod
    def of(numbers: np.ndarray, buffer_name: str) -> UniqueIds:
        """Ids of the given buffer."""
        return numbers.view(UniqueIds.kind(buffer_name))

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
        return UniqueIds.of, (np.array(self.view(np.ndarray)), self.buffer_name)


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
        self = cls.of(columns)
        _set_describe(self, describe)
        _set_tensors(self, tensors)
        return self

    def additional(self) -> dict[str, Any]:
        """The additional columns, without making them a part of the sample."""
        make = self._describe
        return {
            **(make[0](*make[1:]) if make is not None else {}),
            **{name: column for name, column in self._columns.items() if name in SAMPLE_COLUMNS},
        }

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
            pair = ready.get(name)
            if pair is not None and pair[0] is column:
                out[name] = pair[1]
            else:
                out[name] = Batch.of({name: column}).to_torch(device)[name]
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
        self.describe()
        return Batch.of(self._columns)[key]

    def __iter__(self) -> Iterator[Row]:
        return iter(Batch.of(self.describe()._columns))

    def __reduce__(self) -> tuple:
        return Batch.of, (dict(self.describe()._columns),)

    def get(self, name: str, default: Any = None) -> Any:
        """A column, or ``default`` where there is none of that name."""
        return self[name] if name in self else default

    def copy(self) -> Batch:
        """A plain Batch over the same columns, additional ones included."""
        return Batch.of(self.describe()._columns).copy()


_to_torch = Batch.to_torch
_set_describe = Sampled._describe.__set__  # type: ignore[attr-defined]
_set_tensors = Sampled._tensors.__set__  # type: ignore[attr-defined]
tree.register(Sampled, lambda sample: sample._columns, Batch.of)


def described(
    ids: UniqueIds, slots: np.ndarray, uses: np.ndarray, columns: Mapping, cur_learner_iter: int
) -> dict[str, Any]:
    """The additional columns of a sample whose rows have no priorities."""
    n, born = len(slots), columns.get('collect_iter')
    return {
        'IS': np.ones(n, dtype=np.float32),
        'priority': np.ones(n),
        'replay_unique_id': ids,
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
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.int64).reshape(-1)


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
