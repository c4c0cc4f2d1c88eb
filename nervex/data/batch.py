"""Batch: named columns of equal length that are also a sequence of rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nervex.data.names import USUAL_COLUMNS
from nervex.utils import tree

_SCALARS = (bool, int, float, np.generic)
_SHARED = frozenset('?bBhilqef')  # dtypes (by their letter) that torch has too: tensors over an array's own memory
_FINISHED = frozenset(np.dtype(letter) for letter in '?bBhHiIlLqQefdg')
_new = object.__new__
_ARRAY, _ARRAYS = np.ndarray, {np.ndarray}


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
        for name, value in columns.items():
            if not (type(value) is _ARRAY and value.dtype in _FINISHED):  # most are finished columns
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
        names = rows[0].keys()
        for position, row in enumerate(rows):
            if row.keys() != names and set(row.keys()) != set(names):
                odd = sorted(set(row.keys()) ^ set(names), key=str)
                raise KeyError(f'row {position} differs from row 0 in column(s) {odd}; all rows need the same columns')
        return Batch.of({name: stack_values([row[name] for row in rows]) for name in names})

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
            raise TypeError(f'this Batch is one row (or its columns differ in length): {_shapes(self)}')
        return length

    def __bool__(self) -> bool:
        return bool(self._columns) and _length(self) != 0

    def __iter__(self) -> Iterator[Row]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            return self._columns[key]
        kind = type(self) if type(key) is slice or not isinstance(key, (int, np.integer)) else Row
        key = key if type(key) is slice else _as_index(key)
        try:
            return kind.of(
                {
                    name: column[key] if type(column) is _ARRAY else _index_column(name, column, key)
                    for name, column in self._columns.items()
                }
            )
        except IndexError:  # of an array: say which
            return kind.of({name: _index_column(name, column, key) for name, column in self._columns.items()})

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, str):
            _assign_rows(self, _as_index(key), value)
            return
        value = as_column(value)
        others = {k: v for k, v in self._columns.items() if k != key}
        length = _length(type(self).of(others)) if others else None
        for path, leaf in tree.zip(value, path=(key,)) if length is not None else ():
            shape = getattr(leaf, 'shape', None)
            if shape and shape[0] != length:
                raise ValueError(
                    f"column '{tree.label(path)}' of shape {tuple(shape)} and dtype {leaf.dtype} does not fit a Batch "
                    f'of {length} rows'
                )
        self._columns[key] = value

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
        parts = [b for b in (b if isinstance(b, Batch) else Batch(b) for b in batches) if b._columns]
        if not parts:
            return Batch()
        return Batch.of(_by_column(lambda path, *columns: _join(path, columns, torch.cat, np.concatenate, 0), parts))

    @staticmethod
    def stack(batches: Iterable[Batch | Mapping], axis: int = 0) -> Batch:
        """Join along a new axis: rows become a batch. All must have the same columns."""
        parts = [b if isinstance(b, Batch) else Batch(b) for b in batches]
        if not parts:
            return Batch()

        def join(path: tuple, *columns: Any) -> Any:
            if isinstance(columns[0], (torch.Tensor, np.ndarray)):
                return _join(path, columns, torch.stack, _stack_arrays, axis)
            return stack_values(columns)

        return nested(_by_column(join, parts))

    # ---- conversions
    def to_dict(self) -> dict[str, Any]:
        """A plain nested dict of the columns (not copied)."""
        return {name: c.to_dict() if isinstance(c, Batch) else c for name, c in self.items()}

    def to_torch(self, device: torch.device | str | None = None) -> dict[str, Any]:
        """A plain nested dict of tensors on ``device``; float64 arrays become float32, object columns stay."""
        out: dict[str, Any] = {}
        share = torch.from_numpy
        for name, c in self._columns.items():
            if device is None and type(c) is _ARRAY and c.dtype.char in _SHARED and c.flags.carray:
                out[name] = share(c)
            else:
                out[name] = c.to_torch(device) if isinstance(c, Batch) else tensor_column(c, device, shrink=True)
        return out

    def to(self, device: torch.device | str) -> Batch:
        """A Batch whose numeric columns are tensors on ``device``; dtypes are kept."""
        return tree.map(lambda column: tensor_column(column, device, shrink=False), self)

    def to_numpy(self) -> Batch:
        """A Batch whose tensors are NumPy arrays (sharing memory on the CPU)."""
        return tree.map(numpy_column, self)

    # ---- comparison, arithmetic, printing
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch) or self.keys() != other.keys():
            return False
        return all(_equal(numpy_column(column), numpy_column(other[name])) for name, column in self.items())

    def __neg__(self) -> Batch:
        return self._apply('neg', lambda column, _: -column, None)

    def _apply(self, name: str, function: Callable, other: Any) -> Batch:
        """``function(column, other)`` for every column; a Batch or dict as ``other`` column by column."""
        if isinstance(other, (Batch, Mapping)):
            pair = [self, other if isinstance(other, Batch) else Batch(other)]
            return type(self).of(_by_column(lambda path, *pair: _calculated(name, path, function, *pair), pair))
        return type(self).of(_by_column(lambda path, column: _calculated(name, path, function, column, other), [self]))

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
        raise TypeError(f'this Batch is one row, it has no length: {_shapes(self)}')

    def __bool__(self) -> bool:
        return bool(self._columns)


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


def _define_usual_columns() -> None:
    """Attributes for the usual columns: a quarter of the time of ``__getattr__`` (containers bench, ``attribute``)."""

    def attribute(name: str) -> property:
        def column(self: Batch) -> Any:
            try:
                return self._columns[name]
            except KeyError:
                raise AttributeError(name) from None  # sends Python to __getattr__

        return property(column)

    for name in USUAL_COLUMNS:
        setattr(Batch, name, attribute(name))


_define_operators()
_define_usual_columns()
_set_columns: Callable[[Batch, dict], None] = Batch._columns.__set__  # type: ignore[attr-defined, misc]
for _kind in (Batch, Row):
    tree.register(_kind, lambda batch: batch._columns, _kind.of)


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


def _shapes(batch: Batch) -> str:
    """The shapes of all columns, for error messages."""
    shapes = [f'{tree.label(path)}: {tuple(getattr(leaf, "shape", ()))}' for path, leaf in tree.zip(batch)]
    return ', '.join(shapes) or 'no columns'


# ---- columns from values
def as_column(value: Any) -> Any:
    """A value given by a user as a column: dicts nest, lists and tuples become arrays, the rest is kept as it is."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return value.astype(object) if isinstance(value, np.ndarray) and value.dtype.kind in 'US' else value
    if isinstance(value, Mapping) or hasattr(value, '_asdict'):
        return Batch(value if isinstance(value, Mapping) else value._asdict())
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) and isinstance(value[0], (torch.Tensor, Mapping, Batch)):
        return stack_values(value)
    try:
        array = np.array(value)
    except ValueError:  # ragged
        return object_column(value)
    return array.astype(object) if array.dtype.kind in 'USVMm' else array


def object_column(values: Sequence) -> np.ndarray:
    """One object per row, whatever it is."""
    column = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        column[k] = value
    return column


def stack_values(values: Sequence) -> Any:
    """The values of one column in all rows, stacked; values are kept exactly, what does not stack becomes objects."""
    first = values[0]
    if isinstance(first, torch.Tensor):
        if all(isinstance(v, torch.Tensor) and v.shape == first.shape and v.dtype == first.dtype for v in values):
            return torch.stack(list(values))
    elif isinstance(first, np.ndarray):
        if first.dtype.kind not in 'US' and all(isinstance(v, np.ndarray) and v.shape == first.shape for v in values):
            return np.stack(values)
    elif isinstance(first, (Mapping, Batch)):
        names = set(first.keys())
        if all(isinstance(v, (Mapping, Batch)) and set(v.keys()) == names for v in values):
            return Batch.from_rows(values)
    elif hasattr(first, '_asdict'):
        if all(type(v) is type(first) for v in values):
            return Batch.from_rows([v._asdict() for v in values])
    elif isinstance(first, _SCALARS) and all(isinstance(v, _SCALARS) for v in values):
        boolean = [isinstance(v, (bool, np.bool_)) for v in values]
        if all(boolean) or not any(boolean):
            return np.array(values)
    return object_column(values)


def nested(columns: Mapping | Batch) -> Batch:
    """Dicts (or rows) inside each other as Batches; what is no dict is a finished column."""
    inner = (dict, Row)
    return Batch.of({name: nested(c) if isinstance(c, inner) else c for name, c in columns.items()})


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


def _stack_arrays(parts: Sequence, axis: int) -> np.ndarray:
    """``np.stack``, in a third of its time for many small arrays."""
    first = parts[0]
    if axis == 0 and first.ndim and len(set(map(len, parts))) == 1:
        return np.concatenate(parts).reshape(len(parts), *first.shape)  # other axes that differ do not concatenate
    return np.stack(parts, axis)


def _join(path: tuple, parts: Sequence, torch_join: Any, numpy_join: Any, axis: int) -> Any:
    try:
        if (kinds := set(map(type, parts))) != _ARRAYS and any(issubclass(kind, torch.Tensor) for kind in kinds):
            return torch_join([p if isinstance(p, torch.Tensor) else torch.as_tensor(p) for p in parts], axis)
        return numpy_join(parts, axis)
    except (ValueError, RuntimeError) as e:
        shapes = ', '.join(f'{tuple(p.shape)} {p.dtype}' for p in parts[:4])
        raise ValueError(f"column '{tree.label(path)}' does not join: {shapes}; {e}") from e


def tensor_column(column: Any, device: Any, shrink: bool) -> Any:
    """A column as a tensor on ``device`` (None: where it is). ``shrink`` makes float64 arrays float32."""
    if isinstance(column, (np.ndarray, np.generic)):
        column = np.asarray(column)
        if column.dtype.kind not in 'biufc':
            return column
        if shrink and column.dtype == np.float64:
            column = column.astype(np.float32)
        if not column.flags.writeable or any(s < 0 for s in column.strides):
            column = column.copy()
        column = torch.from_numpy(column)
    return column.to(device) if device is not None and isinstance(column, torch.Tensor) else column


def numpy_column(column: Any) -> Any:
    """A tensor column as an array (of float32 for bfloat16, which NumPy lacks); other columns unchanged."""
    if not isinstance(column, torch.Tensor):
        return column
    column = column.detach().cpu()
    return (column.float() if column.dtype == torch.bfloat16 else column).numpy()


def _calculated(name: str, path: tuple, function: Callable, column: Any, other: Any) -> Any:
    try:
        return function(column, other)
    except (TypeError, ValueError, RuntimeError) as e:
        kind = next(k for k in (TypeError, ValueError, RuntimeError) if isinstance(e, k))  # NumPy has its own ones
        shape, dtype = (getattr(column, attribute, type(column).__name__) for attribute in ('shape', 'dtype'))
        raise kind(
            f"{name} does not work on column '{tree.label(path)}' of shape {shape} and dtype {dtype}: {e}"
        ) from e


def _equal(a: Any, b: Any) -> bool:
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return bool(np.all(a == b))
    if a.shape != b.shape:
        return False
    if a.dtype == object or b.dtype == object:
        return all(_equal(numpy_column(x), numpy_column(y)) for x, y in zip(a.reshape(-1), b.reshape(-1)))
    return bool(np.array_equal(a, b))


# ---- rows by index
def _as_index(key: Any) -> Any:
    """An index that NumPy and torch read alike: lists and integer arrays as int64."""
    if isinstance(key, (list, torch.Tensor)):
        key = np.asarray(key) if not isinstance(key, torch.Tensor) else key.detach().cpu().numpy()
        key = key.astype(np.int64) if not key.size and key.dtype != bool else key
    if isinstance(key, np.ndarray) and key.dtype.kind in 'iu' and key.dtype != np.int64:
        return key.astype(np.int64)
    return tuple(_as_index(part) for part in key) if isinstance(key, tuple) else key


def _index_column(name: str, column: Any, key: Any) -> Any:
    """``column[key]``, saying which column it was if that does not work."""
    try:
        return column[key] if not isinstance(column, torch.Tensor) else column[_torch_index(column, key)]
    except (TypeError, IndexError, ValueError) as e:
        shape = tuple(getattr(column, 'shape', ()))
        kind = IndexError if isinstance(e, IndexError) and shape else TypeError
        raise kind(f"column '{name}' of shape {shape} cannot be indexed by {key!r}: {e}") from e


def _torch_index(column: torch.Tensor, key: Any) -> Any:
    if isinstance(key, slice) and (key.step or 1) < 0:  # torch has no negative steps
        return torch.arange(column.shape[0]).numpy()[key].copy()
    return torch.from_numpy(np.ascontiguousarray(key)) if isinstance(key, np.ndarray) else key


def _assign_rows(batch: Batch, key: Any, value: Any) -> None:
    """``batch[key] = value``: a Batch or dict column by column, anything else into every column."""
    by_name = isinstance(value, (Mapping, Batch))
    if by_name and (unknown := [n for n in value.keys() if n not in batch]):
        raise KeyError(f'assignment to rows: no column {unknown}; the Batch has {list(batch.keys())}')
    if by_name and (missing := [n for n in batch.keys() if n not in value]):
        raise KeyError(f'assignment to rows: column(s) {missing} are missing in the value')
    for name, column in batch.items():
        part = value[name] if by_name else value
        if isinstance(column, Batch):
            _assign_rows(column, key, part)
        else:
            _assign(name, column, key, part)


def _assign(name: str, column: Any, key: Any, value: Any) -> None:
    if isinstance(column, torch.Tensor):
        key, value = _torch_index(column, key), torch.as_tensor(value)
        if value.device == column.device and value.untyped_storage().data_ptr() == column.untyped_storage().data_ptr():
            value = value.clone()  # rows of the same column: torch refuses to write what it reads
        fits = torch.can_cast(value.dtype, column.dtype)
    else:
        value, fits = numpy_column(value), True
        if column.dtype != object:
            value = np.asarray(value)
            fits = np.can_cast(value.dtype, column.dtype, 'same_kind') or _exact(value, column.dtype)
    try:
        if not fits:
            raise TypeError('the value would not be kept exactly')
        column[key] = value
    except (TypeError, ValueError, RuntimeError, OverflowError) as e:
        raise ValueError(
            f"column '{name}' of shape {tuple(column.shape)} and dtype {column.dtype} does not take a value of shape "
            f'{tuple(getattr(value, "shape", ()))} and dtype {getattr(value, "dtype", type(value).__name__)}: {e}'
        ) from e


def _exact(value: np.ndarray, dtype: np.dtype) -> bool:
    """Whether a single number of another kind is kept as it is."""
    return (
        value.ndim == 0 and value.dtype.kind in 'biuf' and dtype.kind in 'biuf' and bool(value.astype(dtype) == value)
    )
