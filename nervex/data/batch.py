"""Batch: named columns of equal length that are also a sequence of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nervex.data.batch_access import UsualColumns
from nervex.data.batch_arithmetic import Arithmetic
from nervex.data.batch_ops import (
    as_column,
    as_index,
    assign_rows,
    cat_columns,
    check_length,
    columns_equal,
    index_column,
    numpy_column,
    shapes,
    stack_columns,
    stack_values,
    tensor_column,
)


class Batch(Arithmetic, UsualColumns):
    """
    Overview:
        A set of named columns (torch tensors, NumPy arrays, nested Batches, object arrays for anything else) that is
        also a sequence of rows: ``b['obs']`` or ``b.obs`` is a column, ``b[3]`` a row, ``b[2:8]`` a view, ``b[idx]``
        and ``b[mask]`` gather. ``len`` and iteration go over rows, ``in`` and ``keys()`` over columns. Not a dict.
        ``Batch(a=[1, 2], b={'c': x})`` converts lists, tuples and dicts; a list of dicts is stacked.
    Interfaces:
        of, from_rows, cat, stack, split, to, to_dict, to_numpy, to_torch, keys, values, items, get, pop, update, copy
    """

    __slots__ = ('_columns',)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: Mapping | Batch | Sequence | None = None, /, **columns: Any) -> None:
        if type(data) is dict:
            columns = {**data, **columns}
        elif data is not None:
            given = data if isinstance(data, (Mapping, Batch)) else Batch.from_rows(list(data))
            columns = {**dict(given.items()), **columns}
        for name, value in columns.items():
            if not (type(value) is _ARRAY and value.dtype.kind in 'fbiu'):  # most are finished columns
                columns[name] = as_column(value)
        _set_columns(self, columns)

    @classmethod
    def of(cls, columns: dict[str, Any]) -> Batch:
        """Wrap a dict of finished columns: nothing is copied, converted or checked (for hot paths)."""
        self = _new(cls)
        _set_columns(self, columns)
        return self

    @staticmethod
    def from_rows(rows: Sequence[Mapping | Batch]) -> Batch:
        """Stack rows (dicts, EasyDicts, Batches); every row must have the columns of the first one."""
        if not len(rows):
            return Batch()
        names, columns = rows[0].keys(), {}
        for position, row in enumerate(rows):
            if row.keys() != names and set(row.keys()) != set(names):
                odd = sorted(set(row.keys()) ^ set(names), key=str)
                raise KeyError(f'row {position} differs from row 0 in column(s) {odd}; all rows need the same columns')
        for name in names:
            columns[name] = stack_values([row[name] for row in rows])
        return Batch.of(columns)

    # ---- columns
    def keys(self) -> Any:
        """Names of the columns."""
        return self._columns.keys()

    def values(self) -> Any:
        """The columns."""
        return self._columns.values()

    def items(self) -> Any:
        """Pairs (name, column)."""
        return self._columns.items()

    def get(self, name: str, default: Any = None) -> Any:
        """A column, or ``default`` where there is none of that name."""
        return self._columns.get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        """Remove a column and return it."""
        return self._columns.pop(name, *default)

    def update(self, other: Mapping | Batch | None = None, /, **columns: Any) -> None:
        """Set several columns."""
        for name, value in {**(dict(other.items()) if other is not None else {}), **columns}.items():
            self[name] = value

    def copy(self) -> Batch:
        """A new Batch over the same columns (nested Batches are copied the same way)."""
        return type(self).of({k: v.copy() if isinstance(v, Batch) else v for k, v in self._columns.items()})

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getattr__(self, name: str) -> Any:
        if name == '_columns':  # the slot was never set
            raise AttributeError(name)
        try:
            return self._columns[name]
        except KeyError:
            raise AttributeError(f"Batch has no column '{name}'; it has: {', '.join(map(str, self.keys()))}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def __delitem__(self, name: str) -> None:
        del self._columns[name]

    # ---- rows
    def __len__(self) -> int:
        length = _length(self)
        if length is None:
            raise TypeError(f'this Batch is one row (or its columns differ in length): {shapes(self)}')
        return length

    def __bool__(self) -> bool:
        return bool(self._columns) and _length(self) != 0

    def __iter__(self) -> Iterator[Row]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            return self._columns[key]
        kind = type(self) if type(key) is slice or not isinstance(key, (int, np.integer)) else Row
        key = key if type(key) is slice else as_index(key)
        try:
            return kind.of(
                {
                    name: column[key] if type(column) is _ARRAY else index_column(name, column, key)
                    for name, column in self._columns.items()
                }
            )
        except IndexError:  # of an array: say which
            return kind.of({name: index_column(name, column, key) for name, column in self._columns.items()})

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            value = as_column(value)
            others = {k: v for k, v in self._columns.items() if k != key}
            check_length(key, value, _length(type(self).of(others)) if others else None)
            self._columns[key] = value
        else:
            assign_rows(self, as_index(key), value)

    def split(self, size: int, shuffle: bool = False, rng: np.random.Generator | None = None) -> Iterator[Batch]:
        """Pieces of ``size`` rows, the last may be shorter; ``shuffle`` permutes them first, by ``rng`` if given."""
        if size < 1:
            raise ValueError(f'split: size must be at least 1 row, got {size}')
        length = len(self)
        whole = self[(rng or np.random.default_rng()).permutation(length)] if shuffle else self
        parts = [slice(start, start + size) for start in range(0, length, size)]
        if any(type(column) is not _ARRAY for column in whole._columns.values()):
            return (whole[rows] for rows in parts)
        of, columns = type(self).of, list(whole._columns.items())
        return (of({name: column[rows] for name, column in columns}) for rows in parts)

    @staticmethod
    def cat(batches: Iterable[Batch | Mapping]) -> Batch:
        """Join along the rows. All must have the same columns."""
        return cat_columns([b if isinstance(b, Batch) else Batch(b) for b in batches])

    @staticmethod
    def stack(batches: Iterable[Batch | Mapping], axis: int = 0) -> Batch:
        """Join along a new axis: rows become a batch. All must have the same columns."""
        return stack_columns([(b if isinstance(b, Batch) else Batch(b))._columns for b in batches], axis)

    # ---- conversions
    def to_dict(self) -> dict[str, Any]:
        """A plain nested dict of the columns (not copied)."""
        return {name: c.to_dict() if isinstance(c, Batch) else c for name, c in self.items()}

    def to_torch(self, device: torch.device | str | None = None) -> dict[str, Any]:
        """A plain nested dict of tensors on ``device``; float64 arrays become float32, object columns stay."""
        return {
            name: c.to_torch(device) if isinstance(c, Batch) else tensor_column(c, device, shrink=True)
            for name, c in self.items()
        }

    def to(self, device: torch.device | str) -> Batch:
        """A Batch whose numeric columns are tensors on ``device``; dtypes are kept."""
        return type(self).of(
            {
                name: c.to(device) if isinstance(c, Batch) else tensor_column(c, device, shrink=False)
                for name, c in self.items()
            }
        )

    def to_numpy(self) -> Batch:
        """A Batch whose tensors are NumPy arrays (sharing memory on the CPU)."""
        return type(self).of({n: c.to_numpy() if isinstance(c, Batch) else numpy_column(c) for n, c in self.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batch) and columns_equal(self, other)

    def __repr__(self) -> str:
        lines = []
        for name, column in self.items():
            head = f'    {name}: '
            lines.append(head + repr(column).replace('\n', '\n' + ' ' * len(head)) + ',\n')
        return 'Batch(' + ('\n' + ''.join(lines) if lines else '') + ')'

    def __reduce__(self) -> tuple:
        return type(self).of, (dict(self._columns),)


class Row(Batch):
    """One row of a Batch: the same access by name; it has no length."""

    __slots__ = ()

    def __len__(self) -> int:
        raise TypeError(f'this Batch is one row, it has no length: {shapes(self)}')

    def __bool__(self) -> bool:
        return bool(self._columns)


_new = object.__new__
_ARRAY = np.ndarray
_set_columns: Callable[[Batch, dict], None] = Batch._columns.__set__  # type: ignore[attr-defined]


def _length(batch: Batch) -> int | None:
    """Rows of the batch; None if a column has no first axis or the first axes differ (then it is one row)."""
    length: int | None = None
    if isinstance(batch, Row):
        return None
    for column in batch._columns.values():
        if isinstance(column, Batch):
            if (rows := _length(column)) is None:
                return None
            if not column._columns:
                continue
        else:
            shape = getattr(column, 'shape', None)
            if not shape:
                return None
            rows = shape[0]
        if length is None:
            length = rows
        elif rows != length:
            return None
    return 0 if length is None else length
