"""ColumnStore: a fixed number of slots, one plain array per column, allocated when the first row shows its shape."""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch
from nervex.data.memory import check_memory


def flatten(columns: Mapping | Batch, prefix: tuple = ()) -> dict:
    """Nested columns as one flat dict: a plain name, or a tuple of names where the column is nested."""
    flat: dict = {}
    for name, column in columns.items():
        if isinstance(column, (Mapping, Batch)):
            flat.update(flatten(column, (*prefix, name)))
        else:
            flat[(*prefix, name) if prefix else name] = column
    return flat


def unflatten(flat: dict) -> dict:
    """The inverse of ``flatten``; nested parts become Batches."""
    out: dict = {}
    for name, column in flat.items():
        if type(name) is tuple:
            node = out
            for part in name[:-1]:
                node = node.setdefault(part, {})
            node[name[-1]] = column
        else:
            out[name] = column
    return {k: _nest(v) if isinstance(v, dict) else v for k, v in out.items()}


def _nest(node: dict) -> Batch:
    return Batch.of({k: _nest(v) if isinstance(v, dict) else v for k, v in node.items()})


class ColumnStore:
    """
    Overview:
        ``capacity`` slots of a fixed set of columns. The columns, their shapes and dtypes are those of the first rows
        written; memory is reserved then, and touched only as slots are filled. A dtype that cannot hold a later value
        exactly is widened. Knows nothing of order or validity: that is the business of the buffers on top.
    Arguments:
        - capacity (:obj:`int`): number of slots
        - name (:obj:`str`): whose store it is, for error messages
    """

    def __init__(self, capacity: int, name: str = 'buffer') -> None:
        self.capacity, self.name = capacity, name
        self.arrays: dict[Any, np.ndarray] = {}
        self.torch_names: set = set()
        self.nested = False
        self._plan: list[tuple] = []

    @property
    def allocated(self) -> bool:
        """True once a row has been seen."""
        return bool(self.arrays)

    @property
    def nbytes(self) -> int:
        """Bytes reserved (object columns count their references only)."""
        return sum(a.nbytes for a in self.arrays.values())

    def allocate(self, flat: dict) -> None:
        """Reserve the columns for rows like these (flat columns with a leading axis)."""
        arrays = {name: column if isinstance(column, np.ndarray) else column.numpy() for name, column in flat.items()}
        check_memory(self.name, self.capacity, {n: a[:1] for n, a in arrays.items()})
        for name, array in arrays.items():
            self.arrays[name] = np.zeros((self.capacity, *array.shape[1:]), dtype=array.dtype)
            if array.dtype == object:
                self.arrays[name].fill(None)
        self.torch_names = {name for name, column in flat.items() if isinstance(column, torch.Tensor)}
        self.nested = any(type(name) is tuple for name in flat)
        self._make_plan()

    def _make_plan(self) -> None:
        self._plan = [(name, a, a.dtype, math.prod(a.shape[1:]), name in self.torch_names)
                      for name, a in self.arrays.items()]

    def write(self, columns: dict, start: int, n: int) -> None:
        """
        Overview:
            Store ``n`` rows at slots ``start, start + 1, ...``, wrapping at the end. Everything is checked before
            anything is written.
        """
        if not self.arrays:
            self.allocate(_arrays_of(columns))
        if self.nested:
            columns = flatten(columns)
        values = []
        for name, _, dtype, width, is_torch in self._plan:
            try:
                value = columns[name]
                value = value.numpy() if is_torch else value
                fits = value.dtype is dtype and value.size == n * width
            except (KeyError, AttributeError, TypeError, RuntimeError):
                fits = False
            if not fits:
                return self._write_checked(columns, start, n)
            values.append(value)
        if len(columns) != len(values):
            return self._write_checked(columns, start, n)
        end = start + n
        if end <= self.capacity:
            rows = slice(start, end)
            for (_, array, _, _, _), value in zip(self._plan, values):
                array[rows] = value
        else:
            split = self.capacity - start
            for (_, array, _, _, _), value in zip(self._plan, values):
                array[start:] = value[:split]
                array[:n - split] = value[split:]

    def _write_checked(self, columns: dict, start: int, n: int) -> None:
        """The slow way: find out what does not fit, widen dtypes where that helps, then write."""
        flat = _arrays_of(columns)
        if set(flat) != set(self.arrays):
            raise KeyError(f"{self.name}: rows have the columns {sorted(map(str, flat))}, the first rows had "
                           f'{sorted(map(str, self.arrays))}')
        for name, column in flat.items():
            array = self.arrays[name]
            column = column.numpy() if isinstance(column, torch.Tensor) else column
            flat[name] = column
            if column.shape != (n, *array.shape[1:]):
                raise ValueError(f"{self.name}: column '{_label(name)}' stores rows of shape {array.shape[1:]} and "
                                 f'dtype {array.dtype}, got {column.shape} of dtype {column.dtype} for {n} rows')
            if column.dtype != array.dtype:
                self._widen(name, column.dtype)
        rows = (np.arange(n) + start) % self.capacity
        for name, column in flat.items():
            self.arrays[name][rows] = column

    def _widen(self, name: Any, dtype: np.dtype) -> None:
        array = self.arrays[name]
        kinds = (array.dtype.kind, dtype.kind)
        if any(k not in 'biufcO' for k in kinds) or ('b' in kinds and kinds != ('b', 'b') and 'O' not in kinds):
            raise ValueError(f"{self.name}: column '{_label(name)}' stores {array.dtype}, got {dtype}")
        wide = np.promote_types(array.dtype, dtype)
        if wide != array.dtype:
            self.arrays[name] = array.astype(wide)
            self._make_plan()

    def gather(self, slots: np.ndarray) -> dict:
        """The rows at ``slots`` in fresh memory, as a dict of columns."""
        flat: dict = {}
        for name, array in self.arrays.items():
            flat[name] = array.take(slots, 0)
        for name in self.torch_names:
            flat[name] = torch.from_numpy(flat[name])
        return unflatten(flat) if self.nested else flat

    def gather_into(self, slots: np.ndarray, out: dict) -> None:
        """The rows at ``slots`` into the arrays of ``out`` (as ``outputs`` made them). Slots are trusted."""
        for name, array in self.arrays.items():
            array.take(slots, 0, out[name], 'clip')

    def outputs(self, n: int) -> tuple[dict, dict]:
        """Arrays for ``gather_into``, and the same memory as a dict of columns."""
        flat = {name: np.empty((n, *array.shape[1:]), array.dtype) for name, array in self.arrays.items()}
        view = {name: torch.from_numpy(a) if name in self.torch_names else a for name, a in flat.items()}
        return flat, unflatten(view) if self.nested else view

    def state_dict(self, rows: np.ndarray | slice) -> dict[str, Any]:
        """Columns of the given slots as tensors (objects as lists)."""
        columns = []
        for name, array in self.arrays.items():
            part = array[rows]
            columns.append({
                'name': list(name) if type(name) is tuple else name,
                'torch': name in self.torch_names,
                'data': list(part) if array.dtype == object else torch.from_numpy(np.ascontiguousarray(part)),
            })
        return {'columns': columns}

    def load_state_dict(self, state: dict[str, Any], rows: np.ndarray | slice) -> None:
        """Put back what ``state_dict`` gave; the store is emptied first."""
        self.arrays, self.torch_names, self._plan = {}, set(), []
        flat: dict = {}
        for column in state['columns']:
            name = tuple(column['name']) if isinstance(column['name'], list) else column['name']
            data = column['data']
            if isinstance(data, list):
                array = np.empty(len(data), dtype=object)
                for k, value in enumerate(data):
                    array[k] = value
            else:
                array = data.numpy()
            flat[name] = torch.from_numpy(array) if column['torch'] else array
        if flat:
            self.allocate(flat)
            for name, column in flat.items():
                self.arrays[name][rows] = column.numpy() if isinstance(column, torch.Tensor) else column


def _arrays_of(columns: Mapping) -> dict:
    """Flat columns, each a CPU tensor or an array."""
    flat = flatten(columns)
    for name, column in flat.items():
        if isinstance(column, torch.Tensor):
            flat[name] = column.detach().cpu()
        elif not isinstance(column, np.ndarray):
            flat[name] = np.asarray(column)
    return flat


def _label(name: Any) -> str:
    return '.'.join(name) if type(name) is tuple else str(name)
