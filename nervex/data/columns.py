"""ColumnStore: a fixed number of slots, one plain array per column, reserved when the first row shows its shape."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch, object_column, tensor_column
from nervex.data.flatten import column_label, flatten, unflatten
from nervex.data.memory import Recycler, aligned_empty, check_memory
from nervex.data.writers import compile_writers

logger = logging.getLogger(__name__)


class ColumnStore:
    """
    Overview:
        ``capacity`` slots of a fixed set of columns. The columns, their shapes and dtypes are those of the first rows
        written; memory is reserved then, and touched only as slots are filled. A dtype that cannot hold a later value
        exactly is widened. Knows nothing of order or validity: that is the business of the buffers on top. A write
        that fails may leave its slots half written.
    Arguments:
        - capacity (:obj:`int`): number of slots
        - name (:obj:`str`): whose store it is, for error messages
    Attributes:
        - overhead (:obj:`int`): bytes per slot that the owner needs besides, for the check of memory
        - fast_block, fast_row, fast_values (:obj:`Callable`): the writers of ``compile_writers`` for these columns
    """

    reusable = True  # whether gather_into is worth calling
    expires = False  # whether rows may become unreadable before they are overwritten

    def __init__(self, capacity: int, name: str = 'buffer') -> None:
        self.capacity, self.name = capacity, name
        self.overhead = 0
        self.arrays: dict[Any, np.ndarray] = {}
        self.torch_names: set = set()
        self.nested = self.holds_objects = False
        self.fast_block = self.fast_row = self.fast_values = self._gather_into = _not_yet
        self._recycler = Recycler()

    @property
    def nbytes(self) -> int:
        """Bytes reserved (object columns count their references only)."""
        return sum(a.nbytes for a in self.arrays.values())

    def plan(self, columns: Mapping) -> int:
        """Bytes that rows like these will need; BufferMemoryError if they cannot be had."""
        return check_memory(self.name, self.capacity, _as_numpy(_arrays_of(columns)), self.overhead)

    def allocate(self, flat: dict) -> None:
        """Reserve the columns for rows like these (flat columns with a leading axis)."""
        arrays = _as_numpy(flat)
        check_memory(self.name, self.capacity, arrays, self.overhead)
        for name, array in arrays.items():
            self.arrays[name] = np.zeros((self.capacity, *array.shape[1:]), dtype=array.dtype)
            if array.dtype == object:
                self.arrays[name].fill(None)
        self.torch_names = {name for name, column in flat.items() if isinstance(column, torch.Tensor)}
        self.nested = any(type(name) is tuple for name in flat)
        self._compile()

    def _compile(self) -> None:
        writers = compile_writers(self.arrays, self.torch_names, self.capacity)
        self.fast_block, self.fast_row, self.fast_values, self._gather_into = writers
        self.holds_objects = any(array.dtype == object for array in self.arrays.values())

    def write(self, columns: dict, start: int) -> int:
        """Store rows at the slots ``start, start + 1, ...``, wrapping at the end; gives their number."""
        try:
            n = self.fast_block(flatten(columns) if self.nested else columns, start)
            if n:
                return n
        except MISFITS:  # _write_checked finds out what does not fit
            pass
        n = rows_of(columns)
        if start + n > self.capacity:
            first, whole = self.capacity - start, Batch.of(columns)
            parts = ((whole[:first]._columns, start), (whole[first:]._columns, 0))
            return sum(ColumnStore.write(self, part, at) for part, at in parts)
        self._write_checked(columns, start, n)
        return n

    def _write_checked(self, columns: Mapping, start: int, n: int) -> None:
        """The slow way: allocate, say what does not fit, widen dtypes where that helps, then write."""
        flat = _arrays_of(columns)
        if not self.arrays:
            self.allocate(flat)
        if set(flat) != set(self.arrays):
            raise KeyError(f'{self.name}: got the columns {_names(flat)}, the first rows had {_names(self.arrays)}')
        for name, column in flat.items():
            array = self.arrays[name]
            column = column.numpy() if isinstance(column, torch.Tensor) else column
            if array.dtype == object and column.shape[:1] == (n,) and column.shape != (n, *array.shape[1:]):
                column = object_column(list(column))
            if column.shape != (n, *array.shape[1:]):
                raise ValueError(
                    f"{self.name}: column '{column_label(name)}' stores rows of shape {array.shape[1:]} and dtype "
                    f'{array.dtype}, got shape {column.shape} and dtype {column.dtype} for {n} row(s)'
                )
            if column.dtype != array.dtype:
                self._widen(name, column)
            flat[name] = column
        for name, column in flat.items():
            self.arrays[name][start : start + n] = column

    def _widen(self, name: Any, column: np.ndarray) -> None:
        """Change a column's dtype if values of another one would not be kept exactly in it."""
        array = self.arrays[name]
        kinds = {array.dtype.kind, column.dtype.kind}
        if array.dtype != object and (kinds - set('biufc') or ('b' in kinds and len(kinds) > 1)):
            raise ValueError(f"{self.name}: column '{column_label(name)}' stores {array.dtype}, got {column.dtype}")
        wide = np.promote_types(array.dtype, column.dtype)
        if wide != array.dtype and wide.kind != 'O' and np.array_equal(column.astype(array.dtype), column):
            return
        if wide != array.dtype:
            logger.warning(
                "%s: column '%s' becomes %s, %s cannot hold what was pushed",
                self.name,
                column_label(name),
                wide,
                array.dtype,
            )
            self.arrays[name] = array.astype(wide)
            self._compile()

    def add_column(self, name: Any, rows: np.ndarray) -> None:
        """A further column like these rows; it is zero (None for objects) in all slots."""
        self.arrays[name] = np.zeros((self.capacity, *rows.shape[1:]), dtype=rows.dtype)
        if rows.dtype == object:
            self.arrays[name].fill(None)
        self.nested = self.nested or type(name) is tuple
        self._compile()

    def grow(self, capacity: int, used: int) -> None:
        """More slots; the first ``used`` ones are kept."""
        for name, array in self.arrays.items():
            self.arrays[name] = np.zeros((capacity, *array.shape[1:]), dtype=array.dtype)
            if array.dtype == object:
                self.arrays[name].fill(None)
            self.arrays[name][:used] = array[:used]
        self.capacity = capacity
        if self.arrays:
            self._compile()

    def copy_row(self, source: int, target: int) -> None:
        """Write the row of one slot into another slot as well."""
        for array in self.arrays.values():
            array[target] = array[source]

    def __contains__(self, name: object) -> bool:
        return name in self.arrays or (self.nested and name in self.names())

    def names(self) -> list[str]:
        """The columns, nested ones by their outermost name."""
        return list(dict.fromkeys(key[0] if type(key) is tuple else key for key in self.arrays))

    def column(self, name: str) -> Any:
        """A whole column, all slots, sharing memory; a nested one as a Batch."""
        return self._get(name, lambda array: array)

    def read(self, name: str, slots: np.ndarray) -> Any:
        """One column of the rows in these slots (trusted), in fresh memory."""
        return self._get(name, lambda array: array.take(slots, 0))

    def _get(self, name: str, read: Callable) -> Any:
        found = {}
        for key, array in self.arrays.items():
            if key == name or (type(key) is tuple and key[0] == name):
                column = read(array)
                found[key] = torch.from_numpy(column) if key in self.torch_names else column
        if not found:
            raise KeyError(f"{self.name} has no column '{name}'; it has: {', '.join(self.names()) or 'none yet'}")
        return unflatten(found)[name]

    def gather(self, slots: np.ndarray) -> dict:
        """The rows at ``slots`` (trusted) in fresh memory, as a dict of columns."""
        flat: dict = {}
        for name, array in self.arrays.items():
            if array.ndim == 1 or array.dtype == object or array[0].nbytes < 512:
                flat[name] = array.take(slots, 0)
            else:
                flat[name] = out = self._recycler.empty((len(slots), *array.shape[1:]), array.dtype)
                array.take(slots, 0, out, 'clip')
        for name in self.torch_names:
            flat[name] = torch.from_numpy(flat[name])
        return unflatten(flat) if self.nested else flat

    def gather_into(self, slots: np.ndarray, out: dict) -> bool:
        """The rows at ``slots`` (trusted) into the arrays that ``outputs`` made; False if these no longer fit."""
        try:
            self._gather_into(slots, out)
        except TypeError:  # a column was widened meanwhile
            return False
        return True

    def forget(self) -> None:
        """The owner has emptied itself; memory is kept."""

    def outputs(self, n: int) -> tuple[dict, dict, dict]:
        """
        Overview:
            Arrays for ``gather_into``, the same memory as a dict of columns, and for its plain columns that a learner
            gets in their own dtype: name -> (column, tensor).
        """
        flat = {name: _new_output((n, *array.shape[1:]), array.dtype) for name, array in self.arrays.items()}
        view = {name: torch.from_numpy(a) if name in self.torch_names else a for name, a in flat.items()}
        tensors = {
            name: (column, tensor_column(column, None, shrink=True))
            for name, column in view.items()
            if type(name) is not tuple and column.dtype not in (np.float64, object)
        }
        return flat, unflatten(view) if self.nested else view, tensors

    def state_dict(self, rows: Any) -> dict[str, Any]:
        """Columns of the given slots as tensors (objects as lists)."""
        columns = []
        for name, array in self.arrays.items():
            part = array[rows]
            columns.append(
                {
                    'name': list(name) if type(name) is tuple else name,
                    'torch': name in self.torch_names,
                    'data': list(part) if array.dtype == object else torch.from_numpy(np.ascontiguousarray(part)),
                }
            )
        return {'columns': columns}

    def load_state_dict(self, state: dict[str, Any], rows: Any) -> None:
        """Put back what ``state_dict`` gave at these slots; everything else is forgotten."""
        self.arrays, self.torch_names = {}, set()
        self.fast_block = self.fast_row = self.fast_values = self._gather_into = _not_yet
        flat: dict = {}
        for column in state['columns']:
            name = tuple(column['name']) if isinstance(column['name'], list) else column['name']
            array = object_column(column['data']) if isinstance(column['data'], list) else column['data'].numpy()
            flat[name] = torch.from_numpy(array) if column['torch'] else array
        if flat:
            self.allocate(flat)
            for name, column in flat.items():
                self.arrays[name][rows] = column.numpy() if isinstance(column, torch.Tensor) else column


MISFITS = (TypeError, ValueError, KeyError, IndexError, AttributeError, RuntimeError, NotImplementedError)


def _not_yet(*_: Any) -> int:
    """The writer before the columns are known: stores nothing."""
    return 0


def rows_of(columns: Mapping) -> int:
    """The number of rows, read off the first column."""
    for column in columns.values():
        return len(column)
    return 0


def holds_objects(column: Any) -> bool:
    """Whether a column, or one below it, is an array of Python objects."""
    if isinstance(column, Batch):
        return any(holds_objects(part) for part in column.values())
    return isinstance(column, np.ndarray) and column.dtype == object


def _arrays_of(columns: Mapping) -> dict:
    """Flat columns, each a CPU tensor or an array."""
    flat = flatten(columns)
    for name, column in flat.items():
        if isinstance(column, torch.Tensor):
            column = column.detach().cpu()
            flat[name] = column.float() if column.dtype == torch.bfloat16 else column  # NumPy has no bfloat16
        elif not isinstance(column, np.ndarray):
            flat[name] = np.asarray(column)
        elif column.dtype.kind in 'USMmV':
            flat[name] = column.astype(object)
    return flat


def _as_numpy(flat: dict) -> dict[Any, np.ndarray]:
    return {name: column if isinstance(column, np.ndarray) else column.numpy() for name, column in flat.items()}


def _names(flat: Mapping) -> str:
    return ', '.join(sorted(column_label(n) for n in flat))


def _new_output(shape: tuple, dtype: np.dtype) -> np.ndarray:
    return np.empty(shape, dtype) if dtype.hasobject else aligned_empty(shape, dtype)
