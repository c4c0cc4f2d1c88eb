"""What Batch does to single columns: conversion, stacking, joining, assignment, comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch


def _batch_class() -> Any:
    from nervex.data.batch import Batch  # Batch is built on this module

    return Batch


def as_column(value: Any) -> Any:
    """A value given by a user as a column: dicts nest, lists and tuples become arrays, the rest is kept as it is."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return value.astype(object) if isinstance(value, np.ndarray) and value.dtype.kind in 'US' else value
    batch = _batch_class()
    if isinstance(value, batch):
        return value
    if isinstance(value, Mapping):
        return batch(value)
    if hasattr(value, '_asdict'):
        return batch(value._asdict())
    if isinstance(value, (list, tuple)):
        return sequence_column(value)
    return value


def sequence_column(values: Sequence) -> Any:
    """A list or tuple as a column; what has no common shape becomes an object array."""
    if len(values) and isinstance(values[0], (torch.Tensor, Mapping, _batch_class())):
        return stack_values(values)
    try:
        array = np.array(values)
    except ValueError:  # ragged
        return object_column(values)
    return array.astype(object) if array.dtype.kind in 'USVMm' else array


def object_column(values: Sequence) -> np.ndarray:
    """One object per row, whatever it is."""
    column = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        column[k] = value
    return column


_SCALARS = (bool, int, float, np.generic)


def stack_values(values: Sequence) -> Any:
    """The values of one column in all rows, stacked; values are kept exactly, what does not stack becomes objects."""
    first = values[0]
    kind = type(first)
    batch = _batch_class()
    if isinstance(first, torch.Tensor):
        same = all(isinstance(v, torch.Tensor) and v.shape == first.shape and v.dtype == first.dtype for v in values)
        return torch.stack(list(values)) if same else object_column(values)
    if isinstance(first, np.ndarray):
        same = all(isinstance(v, np.ndarray) and v.shape == first.shape for v in values)
        return np.stack(values) if same and first.dtype.kind not in 'US' else object_column(values)
    if isinstance(first, (Mapping, batch)):
        names = set(first.keys())
        same = all(isinstance(v, (Mapping, batch)) and set(v.keys()) == names for v in values)
        return batch.from_rows(values) if same else object_column(values)
    if hasattr(first, '_asdict'):
        same = all(type(v) is kind for v in values)
        return batch.from_rows([v._asdict() for v in values]) if same else object_column(values)
    if isinstance(first, _SCALARS) and all(isinstance(v, _SCALARS) for v in values):
        boolean = [isinstance(v, (bool, np.bool_)) for v in values]
        return np.array(values) if all(boolean) or not any(boolean) else object_column(values)
    return object_column(values)


def cat_columns(batches: list) -> Any:
    """Join Batches along the rows."""
    batch = _batch_class()
    batches = [b for b in batches if b._columns]
    if not batches:
        return batch()
    _same_names(batches, 'cat')
    out = {}
    for name in list(batches[0].keys()):
        parts = [b._columns[name] for b in batches]
        if isinstance(parts[0], batch):
            out[name] = cat_columns(parts)
        else:
            out[name] = _join(name, parts, torch.cat, np.concatenate, 0)
    return batch.of(out)


def stack_columns(batches: list[dict], axis: int) -> Any:
    """Join the columns of Batches along a new axis."""
    batch = _batch_class()
    if not batches:
        return batch()
    _same_names(batches, 'stack')
    out = {}
    for name in list(batches[0].keys()):
        parts = [b[name] for b in batches]
        if isinstance(parts[0], batch):
            out[name] = stack_columns([part._columns for part in parts], axis)
        elif isinstance(parts[0], (torch.Tensor, np.ndarray)):
            out[name] = _join(name, parts, torch.stack, _stack_arrays, axis)
        else:
            out[name] = stack_values(parts)
    return batch.of(out)


def _stack_arrays(parts: list, axis: int) -> np.ndarray:
    """``np.stack``, in a third of its time for many small arrays."""
    first = parts[0]
    if axis == 0 and first.ndim and len(set(map(len, parts))) == 1:
        return np.concatenate(parts).reshape(len(parts), *first.shape)  # other axes that differ do not concatenate
    return np.stack(parts, axis)


def _same_names(batches: list, what: str) -> None:
    names = batches[0].keys()
    for position, other in enumerate(batches):
        if other.keys() != names:
            odd = sorted(set(names) ^ set(other.keys()), key=str)
            raise ValueError(f'{what}: Batch {position} differs from Batch 0 in column(s) {odd}')


def _join(name: str, parts: list, torch_join: Any, numpy_join: Any, axis: int) -> Any:
    try:
        if any(issubclass(kind, torch.Tensor) for kind in set(map(type, parts))):
            return torch_join([p if isinstance(p, torch.Tensor) else torch.as_tensor(p) for p in parts], axis)
        return numpy_join(parts, axis)
    except (ValueError, RuntimeError) as e:
        shapes = ', '.join(f'{tuple(p.shape)} {p.dtype}' for p in parts[:4])
        raise ValueError(f"column '{name}' does not join: {shapes}; {e}") from e


def tensor_column(column: Any, device: Any, shrink: bool) -> Any:
    """A column as a tensor on ``device`` (None: where it is). ``shrink`` makes float64 arrays float32."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind not in 'biufc':
            return column
        if shrink and column.dtype == np.float64:
            column = column.astype(np.float32)
        if not column.flags.writeable or any(s < 0 for s in column.strides):
            column = column.copy()
        column = torch.from_numpy(column)
    elif isinstance(column, np.generic) and column.dtype.kind in 'biufc':
        return tensor_column(np.asarray(column), device, shrink)
    return column.to(device) if device is not None and isinstance(column, torch.Tensor) else column


def numpy_column(column: Any) -> Any:
    """A tensor column as an array (of float32 for bfloat16, which NumPy lacks); other columns unchanged."""
    if not isinstance(column, torch.Tensor):
        return column
    column = column.detach().cpu()
    return (column.float() if column.dtype == torch.bfloat16 else column).numpy()


def columns_equal(left: Any, right: Any) -> bool:
    """Same columns (in any order), same shapes, same values."""
    if left.keys() != right.keys():
        return False
    batch = _batch_class()
    for name, a in left.items():
        b = right[name]
        if isinstance(a, batch) or isinstance(b, batch):
            if not (isinstance(a, batch) and isinstance(b, batch) and columns_equal(a, b)):
                return False
        elif not _values_equal(numpy_column(a), numpy_column(b)):
            return False
    return True


def _values_equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape != b.shape:
            return False
        if a.dtype == object or b.dtype == object:
            return all(_values_equal(numpy_column(x), numpy_column(y)) for x, y in zip(a.reshape(-1), b.reshape(-1)))
        return bool(np.array_equal(a, b))
    return bool(np.all(a == b))


def as_index(key: Any) -> Any:
    """An index that NumPy and torch read alike: lists and integer arrays as int64, negative steps as positions."""
    if isinstance(key, (list, torch.Tensor)):
        key = np.asarray(key) if not isinstance(key, torch.Tensor) else key.detach().cpu().numpy()
        key = key.astype(np.int64) if not key.size and key.dtype != bool else key
    if isinstance(key, np.ndarray) and key.dtype.kind in 'iu' and key.dtype != np.int64:
        return key.astype(np.int64)
    return tuple(as_index(part) for part in key) if isinstance(key, tuple) else key


def index_column(name: str, column: Any, key: Any) -> Any:
    """``column[key]``, saying which column it was if that does not work."""
    try:
        return column[key] if not isinstance(column, torch.Tensor) else column[_torch_index(column, key)]
    except (TypeError, IndexError, ValueError) as e:
        shape = tuple(getattr(column, 'shape', ()))
        kind = IndexError if isinstance(e, IndexError) and shape else TypeError
        raise kind(f"column '{name}' of shape {shape} cannot be indexed by {key!r}: {e}") from e


def _torch_index(column: torch.Tensor, key: Any) -> Any:
    if isinstance(key, slice) and (key.step or 1) < 0:
        return torch.arange(column.shape[0]).numpy()[key].copy()
    if isinstance(key, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(key))
    return key


def shapes(batch: Any) -> str:
    """The shapes of all columns, for error messages."""
    return (
        ', '.join(
            f'{n}: {shapes(c) if isinstance(c, _batch_class()) else tuple(getattr(c, "shape", ()))}'
            for n, c in batch.items()
        )
        or 'no columns'
    )


def has_length(batch: Any) -> bool:
    """Whether a Batch is many rows and not a single one."""
    try:
        return len(batch) >= 0
    except TypeError:
        return False


def check_length(name: str, value: Any, length: int | None) -> None:
    """A new column must be as long as the others (None: these have no length)."""
    if isinstance(value, _batch_class()):
        for part_name, part in value.items():
            check_length(f'{name}.{part_name}', part, length)
        return
    shape = getattr(value, 'shape', None)
    if shape and length is not None and shape[0] != length:
        raise ValueError(
            f"column '{name}' of shape {tuple(shape)} and dtype {value.dtype} does not fit a Batch of {length} rows"
        )


def assign_rows(batch: Any, key: Any, value: Any) -> None:
    """``batch[key] = value``: a Batch or dict column by column, anything else into every column."""
    by_name = isinstance(value, (Mapping, _batch_class()))
    if by_name and (unknown := [n for n, _ in value.items() if n not in batch]):
        raise KeyError(f'assignment to rows: no column {unknown}; the Batch has {list(batch.keys())}')
    if by_name and (missing := [n for n, _ in batch.items() if n not in value]):
        raise KeyError(f'assignment to rows: column(s) {missing} are missing in the value')
    for name, column in batch.items():
        part = value[name] if by_name else value
        if isinstance(column, _batch_class()):
            assign_rows(column, key, part)
        else:
            _assign(name, column, key, part)


def _assign(name: str, column: Any, key: Any, value: Any) -> None:
    if isinstance(column, torch.Tensor):
        key = _torch_index(column, key)
        value = torch.as_tensor(value)
        if value.device == column.device and value.untyped_storage().data_ptr() == column.untyped_storage().data_ptr():
            value = value.clone()  # rows of the same column: torch refuses to write what it reads
        fits = torch.can_cast(value.dtype, column.dtype)
    else:
        value = numpy_column(value)
        if column.dtype != object:
            given = np.asarray(value)
            fits = np.can_cast(given.dtype, column.dtype, 'same_kind')
            fits = fits or (given.ndim == 0 and _exact(given, column.dtype))
            value = given
        else:
            fits = True
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
    return value.dtype.kind in 'biuf' and dtype.kind in 'biuf' and bool(value.astype(dtype) == value)
