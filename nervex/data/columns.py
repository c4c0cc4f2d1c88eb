"""What a Batch is made of: columns from values, joined, converted, indexed, assigned. Nested ones are dicts here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nervex.utils import tree

_SCALARS = (bool, int, float, np.generic)


# ---- from values
def as_column(value: Any) -> Any:
    """A value given by a user as a column: mappings become dicts, lists and tuples arrays, the rest is kept."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return value
    if isinstance(value, Mapping) or hasattr(value, '_asdict'):
        parts = value if isinstance(value, Mapping) else value._asdict()
        return {name: as_column(part) for name, part in parts.items()}
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) and (isinstance(value[0], torch.Tensor) or hasattr(value[0], 'keys')):
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


def stack_rows(rows: Sequence) -> dict[str, Any]:
    """Rows (dicts, EasyDicts, Batches) as columns; every row must have the columns of the first one."""
    names = rows[0].keys()
    for position, row in enumerate(rows):
        if row.keys() != names and set(row.keys()) != set(names):
            odd = sorted(set(row.keys()) ^ set(names), key=str)
            raise KeyError(f'row {position} differs from row 0 in column(s) {odd}; all rows need the same columns')
    return {name: stack_values([row[name] for row in rows]) for name in names}


def stack_values(values: Sequence) -> Any:
    """The values of one column in all rows, stacked; values are kept exactly, what does not stack becomes objects."""
    first = values[0]
    if isinstance(first, torch.Tensor):
        if all(isinstance(v, torch.Tensor) and v.shape == first.shape and v.dtype == first.dtype for v in values):
            return torch.stack(list(values))
    elif isinstance(first, np.ndarray):
        if first.dtype.kind not in 'US' and all(isinstance(v, np.ndarray) and v.shape == first.shape for v in values):
            return np.stack(values)
    elif hasattr(first, 'keys'):
        if all(hasattr(v, 'keys') and set(v.keys()) == set(first.keys()) for v in values):
            return stack_rows(values)
    elif hasattr(first, '_asdict'):
        if all(type(v) is type(first) for v in values):
            return stack_rows([v._asdict() for v in values])
    elif isinstance(first, _SCALARS) and all(isinstance(v, _SCALARS) for v in values):
        boolean = [isinstance(v, (bool, np.bool_)) for v in values]
        if all(boolean) or not any(boolean):
            return np.array(values)
    return object_column(values)


def join(path: tuple, parts: Sequence, axis: int | None = None) -> Any:
    """Columns of several Batches one after the other, or along a new axis."""
    try:
        kinds = set(map(type, parts))
        if kinds != {np.ndarray} and any(issubclass(kind, torch.Tensor) for kind in kinds):
            tensors = [p if isinstance(p, torch.Tensor) else torch.as_tensor(p) for p in parts]
            return torch.cat(tensors) if axis is None else torch.stack(tensors, axis)
        if axis is None:
            return np.concatenate(parts)
        first = parts[0]
        if axis == 0 and first.ndim and len(set(map(len, parts))) == 1:  # a third of the time of np.stack
            return np.concatenate(parts).reshape(len(parts), *first.shape)  # other axes that differ do not concatenate
        return np.stack(parts, axis)
    except (ValueError, RuntimeError) as e:
        shapes = ', '.join(f'{tuple(p.shape)} {p.dtype}' for p in parts[:4])
        raise ValueError(f"column '{tree.label(path)}' does not join: {shapes}; {e}") from e


# ---- converted
def tensor_column(column: Any, device: Any = None, shrink: bool = True) -> Any:
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


def calculate(name: str, path: tuple, function: Callable, column: Any, other: Any) -> Any:
    """``function(column, other)``; an error says which column it was."""
    try:
        return function(column, other)
    except (TypeError, ValueError, RuntimeError) as e:
        shape, dtype = (getattr(column, attribute, type(column).__name__) for attribute in ('shape', 'dtype'))
        what = f"column '{tree.label(path)}' of shape {shape} and dtype {dtype}"
        kind = next(kind for kind in (TypeError, ValueError, RuntimeError) if isinstance(e, kind))  # NumPy has its own
        raise kind(f'{name} does not work on {what}: {e}') from e


def equal(a: Any, b: Any) -> bool:
    """Whether two columns hold the same."""
    a, b = numpy_column(a), numpy_column(b)
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return bool(np.all(a == b))
    if a.dtype == object or b.dtype == object:
        return a.shape == b.shape and all(equal(x, y) for x, y in zip(a.reshape(-1), b.reshape(-1)))
    return bool(np.array_equal(a, b))


# ---- rows by index
def as_index(key: Any) -> Any:
    """An index that NumPy and torch read alike: lists and integer arrays as int64."""
    if isinstance(key, (list, torch.Tensor)):
        key = np.asarray(key) if not isinstance(key, torch.Tensor) else key.detach().cpu().numpy()
        key = key.astype(np.int64) if not key.size and key.dtype != bool else key
    if isinstance(key, np.ndarray) and key.dtype.kind in 'iu' and key.dtype != np.int64:
        return key.astype(np.int64)
    return tuple(as_index(part) for part in key) if isinstance(key, tuple) else key


def index_column(name: str, column: Any, key: Any) -> Any:
    """``column[key]``, saying which column it was if that does not work."""
    try:
        return column[_torch_index(column, key) if isinstance(column, torch.Tensor) else key]
    except (TypeError, IndexError, ValueError) as e:
        shape = tuple(getattr(column, 'shape', ()))
        kind = IndexError if isinstance(e, IndexError) and shape else TypeError
        raise kind(f"column '{name}' of shape {shape} cannot be indexed by {key!r}: {e}") from e


def _torch_index(column: torch.Tensor, key: Any) -> Any:
    if isinstance(key, slice) and (key.step or 1) < 0:  # torch has no negative steps
        key = np.arange(column.shape[0])[key].copy()
    return torch.from_numpy(np.ascontiguousarray(key)) if isinstance(key, np.ndarray) else key


def assign_rows(batch: Any, key: Any, value: Any, name: str = '') -> None:
    """``batch[key] = value``: something with names column by column, anything else into every column."""
    by_name = hasattr(value, 'keys')
    if by_name and (unknown := [n for n in value.keys() if n not in batch]):
        raise KeyError(f'assignment to rows: no column {unknown}; the Batch has {list(batch.keys())}')
    if by_name and (missing := [n for n in batch.keys() if n not in value]):
        raise KeyError(f'assignment to rows: column(s) {missing} are missing in the value')
    for name, column in batch.items():
        (assign_rows if hasattr(column, 'keys') else _assign)(column, key, value[name] if by_name else value, name)


def _assign(column: Any, key: Any, value: Any, name: str) -> None:
    if isinstance(column, torch.Tensor):
        key, value = _torch_index(column, key), torch.as_tensor(value)
        if value.device == column.device and value.untyped_storage().data_ptr() == column.untyped_storage().data_ptr():
            value = value.clone()  # rows of the same column: torch refuses to write what it reads
        fits = torch.can_cast(value.dtype, column.dtype)
    else:
        value, fits = numpy_column(value), True
        if column.dtype != object:
            value = np.asarray(value)
            fits = np.can_cast(value.dtype, column.dtype, 'same_kind')
            if value.ndim == 0 and value.dtype.kind in 'biuf' and column.dtype.kind in 'biuf':  # one number of any kind
                fits = fits or bool(value.astype(column.dtype) == value)
    try:
        if not fits:
            raise TypeError('the value would not be kept exactly')
        column[key] = value
    except (TypeError, ValueError, RuntimeError, OverflowError) as e:
        raise ValueError(
            f"column '{name}' of shape {tuple(column.shape)} and dtype {column.dtype} does not take a value of shape "
            f'{tuple(getattr(value, "shape", ()))} and dtype {getattr(value, "dtype", type(value).__name__)}: {e}'
        ) from e
