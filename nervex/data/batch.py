"""Batch: named columns of equal length that are also a sequence of rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nervex.data import columns as of_columns
from nervex.data.names import USUAL_COLUMNS
from nervex.utils import tree

_SHARED = frozenset('?bBhilqef')  # dtypes (by their letter) that torch has too: tensors over an array's own memory
_ARRAY = np.ndarray
_new = object.__new__


class Batch:
    """
    Overview:
        A set of named columns (torch tensors, NumPy arrays, nested Batches, object arrays for anything else) that is
        also a sequence of rows: ``b['obs']`` or ``b.obs`` is a column, ``b[3]`` a row, ``b[2:8]`` a view, ``b[idx]``
        and ``b[mask]`` gather. ``len`` and iteration go over rows, ``in`` and ``keys()`` over columns. Not a dict.
        ``Batch(a=[1, 2], b={'c': x})`` converts lists, tuples and dicts; a list of dicts is stacked.
        ``+ - * / // % **`` and their in-place forms go column by column; in-place ones change the columns where they
        lie, so that views write through. A list extended by a Batch (``rows += batch``) gets its rows.
    Interfaces:
        of, from_rows, cat, stack, split, to, to_dict, to_numpy, to_torch, keys, values, items, get, pop, update, copy
    """

    __slots__ = ('_columns',)
    __hash__ = None  # type: ignore[assignment]
    _columns: dict[str, Any]

    def __init__(self, data: Mapping | Batch | Sequence | None = None, /, **columns: Any) -> None:
        if data is not None:
            if type(data) is not dict:
                data = dict((data if isinstance(data, (Mapping, Batch)) else Batch.from_rows(list(data))).items())
            columns = {**data, **columns} if columns else data.copy()
        for value in columns.values():
            if type(value) is not _ARRAY:  # most are finished columns
                columns = {name: nested(of_columns.as_column(column)) for name, column in columns.items()}
                break
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
        return nested(of_columns.stack_rows(rows)) if len(rows) else Batch()

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
            shapes = (f'{tree.label(path)}: {tuple(getattr(leaf, "shape", ()))}' for path, leaf in tree.zip(self))
            raise TypeError(f'this Batch is one row, or its columns differ in length: {", ".join(shapes)}')
        return length

    def __bool__(self) -> bool:
        return bool(self._columns) and _length(self) != 0

    def __iter__(self) -> Iterator[Row]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            return self._columns[key]
        kind = type(self)
        if type(key) is not slice:
            if isinstance(key, (int, np.integer)):
                kind = Row
            else:
                key = of_columns.as_index(key)
        try:
            return kind.of({name: column[key] for name, column in self._columns.items()})
        except (IndexError, TypeError, ValueError):  # of one column: say which, or help torch
            return kind.of({name: of_columns.index_column(name, c, key) for name, c in self._columns.items()})

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, str):
            of_columns.assign_rows(self, of_columns.as_index(key), value)
            return
        value = nested(of_columns.as_column(value))
        others = {k: v for k, v in self._columns.items() if k != key}
        length = _length(type(self).of(others)) if others else None
        for path, leaf in tree.zip(value, path=(key,)) if length is not None else ():
            shape = getattr(leaf, 'shape', None)
            if shape and shape[0] != length:
                what = f"column '{tree.label(path)}' of shape {tuple(shape)} and dtype {leaf.dtype}"
                raise ValueError(f'{what} does not fit a Batch of {length} rows')
        self._columns[key] = value

    def split(self, size: int, shuffle: bool = False, rng: np.random.Generator | None = None) -> Iterator[Batch]:
        """Pieces of ``size`` rows, the last may be shorter; ``shuffle`` permutes them first, by ``rng`` if given."""
        if size < 1:
            raise ValueError(f'split: size must be at least 1 row, got {size}')
        whole = self[(rng or np.random.default_rng()).permutation(len(self))] if shuffle else self
        of, columns = type(self).of, list(whole._columns.items())
        parts = [slice(start, start + size) for start in range(0, len(self), size)]
        return (of({name: column[rows] for name, column in columns}) for rows in parts)

    @staticmethod
    def cat(batches: Iterable[Batch | Mapping]) -> Batch:
        """Join along the rows. All must have the same columns."""
        parts = [b for b in (b if isinstance(b, Batch) else Batch(b) for b in batches) if b._columns]
        return Batch.of(_by_column(lambda path, *columns: of_columns.join(path, columns), parts) if parts else {})

    @staticmethod
    def stack(batches: Iterable[Batch | Mapping], axis: int = 0) -> Batch:
        """Join along a new axis: rows become a batch. All must have the same columns."""
        parts = [b if isinstance(b, Batch) else Batch(b) for b in batches]

        def join(path: tuple, *columns: Any) -> Any:
            if isinstance(columns[0], (torch.Tensor, np.ndarray)):
                return of_columns.join(path, columns, axis)
            return of_columns.stack_values(columns)

        return nested(_by_column(join, parts)) if parts else Batch()

    # ---- conversions
    def to_dict(self) -> dict[str, Any]:
        """A plain nested dict of the columns (not copied)."""
        return {name: c.to_dict() if isinstance(c, Batch) else c for name, c in self.items()}

    def to_torch(self, device: torch.device | str | None = None) -> dict[str, Any]:
        """A plain nested dict of tensors on ``device``; float64 arrays become float32, object columns stay."""
        out: dict[str, Any] = {}
        share, tensor = torch.from_numpy, of_columns.tensor_column
        for name, c in self._columns.items():
            if device is None and type(c) is _ARRAY and c.dtype.char in _SHARED and c.flags.carray:
                out[name] = share(c)
            else:
                out[name] = c.to_torch(device) if isinstance(c, Batch) else tensor(c, device)
        return out

    def to(self, device: torch.device | str) -> Batch:
        """A Batch whose numeric columns are tensors on ``device``; dtypes are kept."""
        return tree.map(lambda column: of_columns.tensor_column(column, device, shrink=False), self)

    def to_numpy(self) -> Batch:
        """A Batch whose tensors are NumPy arrays (sharing memory on the CPU)."""
        return tree.map(of_columns.numpy_column, self)

    # ---- comparison, arithmetic, printing
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch) or self.keys() != other.keys():
            return False
        return all(of_columns.equal(column, other[name]) for name, column in self.items())

    def __neg__(self) -> Batch:
        return self._apply('neg', lambda column, _: -column, None)

    def _apply(self, name: str, function: Callable, other: Any) -> Batch:
        by_name = isinstance(other, (Batch, Mapping))
        batches = [self, other if isinstance(other, Batch) else Batch(other)] if by_name else [self]

        def calculate(path: tuple, *columns: Any) -> Any:
            return of_columns.calculate(name, path, function, columns[0], columns[-1] if by_name else other)

        return type(self).of(_by_column(calculate, batches))

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


def nested(column: Any) -> Any:
    """Dicts (or rows) inside each other as Batches; what is no dict is a finished column."""
    if not isinstance(column, (dict, Row)):
        return column
    return Batch.of({name: nested(part) for name, part in column.items()})


def has_length(batch: Batch) -> bool:
    """Whether a Batch is many rows and not a single one."""
    return _length(batch) is not None


def _length(batch: Batch) -> int | None:
    """Rows of the batch; None if a column has no first axis or the first axes differ (then it is one row)."""
    if isinstance(batch, Row):
        return None
    lengths = set()
    for column in batch._columns.values():
        if not isinstance(column, Batch):
            shape = getattr(column, 'shape', None)
            lengths.add(shape[0] if shape else None)
        elif column._columns:
            lengths.add(_length(column))
    return lengths.pop() if len(lengths) == 1 else None if lengths else 0


def _by_column(function: Callable, batches: Sequence[Batch]) -> dict[str, Any]:
    """``function(path, *columns)`` for the columns of each name, nested ones too; all must have the same columns."""
    parts = [batch._columns for batch in batches]
    names = parts[0].keys()
    for position, part in enumerate(parts):
        if part.keys() != names:
            odd = sorted(part.keys() ^ names, key=str)
            raise ValueError(f'Batch {position} differs from Batch 0 in column(s) {odd}')
    out = {}
    for name in names:
        columns = [part[name] for part in parts]
        inner = isinstance(columns[0], Batch)
        out[name] = tree.map_with_path(function, *columns, path=(name,)) if inner else function((name,), *columns)
    return out


def _define_operators() -> None:
    """``+ - * / // % **`` of Batches: forward, reflected, in place."""
    for name in ('add', 'sub', 'mul', 'truediv', 'floordiv', 'mod', 'pow'):
        plain, in_place = getattr(operator, name), getattr(operator, f'i{name}')

        def forward(self: Batch, other: Any, name: str = name, plain: Callable = plain) -> Batch:
            return self._apply(name, plain, other)

        def backward(self: Batch, other: Any, name: str = name, plain: Callable = plain) -> Any:
            if isinstance(other, list):  # of rows: it is extended, as by any sequence
                return NotImplemented
            return self._apply(name, lambda column, value: plain(value, column), other)

        def inside(self: Batch, other: Any, name: str = name, in_place: Callable = in_place) -> Batch:
            self._columns.update(self._apply(name, in_place, other)._columns)
            return self

        for prefix, method in (('', forward), ('r', backward), ('i', inside)):
            setattr(Batch, f'__{prefix}{name}__', method)


def _usual_column(name: str) -> property:
    """Attribute of a usual column: a quarter of the time of ``__getattr__`` (containers bench, ``attribute``)."""

    def column(self: Batch) -> Any:
        try:
            return self._columns[name]
        except KeyError:
            raise AttributeError(name) from None  # sends Python to __getattr__

    return property(column)


_define_operators()
for _name in USUAL_COLUMNS.split():
    setattr(Batch, _name, _usual_column(_name))
_set_columns: Callable[[Batch, dict], None] = Batch._columns.__set__  # type: ignore[attr-defined, misc]
for _kind in (Batch, Row):
    tree.register(_kind, lambda batch: batch._columns, _kind.of)
