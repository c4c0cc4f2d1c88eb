"""Where the rows of a sample come from: their ids, uses and ages, and the forms in which ids come back."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch
from nervex.data.columns import numpy_column
from nervex.utils import tree

_INT64 = np.dtype(np.int64)
UPDATE_KEYS = ('priority', 'replay_unique_id', 'replay_buffer_idx')  # of what comes back with new priorities


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


def by_buffer(info: Mapping) -> dict[str, Mapping]:
    """New priorities, told apart by the buffers that the ids of their rows name."""
    ids = info['replay_unique_id']
    if owner := getattr(ids, 'buffer_name', ''):
        return {owner: info}
    owners = np.array([str(one).rpartition('_')[0] for one in ids])
    rows = {name: np.flatnonzero(owners == name) for name in dict.fromkeys(owners.tolist())}
    return {name: {key: [info[key][k] for k in own] for key in UPDATE_KEYS} for name, own in rows.items()}
