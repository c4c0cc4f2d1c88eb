"""Ring: a fixed number of slots, one plain array per column, reserved when the first rows show their shape."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch
from nervex.data.columns import numpy_column, object_column
from nervex.data.frames import FrameTable
from nervex.data.memory import check_memory
from nervex.data.sampling import Gather
from nervex.data.writers import compile_writers
from nervex.utils import tree
from nervex.utils.import_helper import load_attribute

logger = logging.getLogger(__name__)


class Ring:
    """
    Overview:
        ``capacity`` slots of a fixed set of columns. Rows are numbered as they come; row k lies in slot k modulo
        capacity. The columns, their shapes and dtypes are those of the first rows; memory is reserved then, and touched
        only as slots are filled. A dtype that cannot hold a later value exactly is widened. Which rows are valid is the
        business of the buffers on top.
    Arguments:
        - capacity (:obj:`int`): number of slots
        - name (:obj:`str`): whose rows they are, for error messages
        - overhead (:obj:`int`): bytes per slot that the owner needs besides, for the check of memory
        - frame_axis (:obj:`int | None`): ``obs`` and ``next_obs`` are stacks of images along this axis: each is kept
          once
        - ragged (:obj:`bool`): a column whose rows begin to differ in shape becomes one of objects
        - wraps (:obj:`bool`): whether the first slot comes after the last one; else the owner makes it ``grow`` first
    Attributes:
        - clock (:obj:`list[int]`): the number of the next row, alone in a list, so that the quick ways share it
        - first (:obj:`int`): the number of the first row since ``restart``
        - arrays (:obj:`dict`): column name (a tuple of names where columns are nested) -> array
        - gather, gather_again (:obj:`Callable`): slots -> columns of their rows, see ``Gather``
        - put, put_values (:obj:`Callable`): the quick ways of storing rows, see ``compile_writers``; where they answer
          0 the rows are for ``append``
    """

    def __init__(
        self,
        capacity: int,
        name: str,
        overhead: int = 0,
        frame_axis: int | None = None,
        ragged: bool = False,
        wraps: bool = True,
    ) -> None:
        self.capacity, self.name, self.clock = capacity, name, [0]
        self._view: Any = None
        self._overhead, self._ragged, self._wraps = overhead, ragged, wraps
        self.frames = None if frame_axis is None else FrameTable(capacity, name, frame_axis)
        self._set_arrays({}, set())
        self.restart()

    def restart(self, number: int = 0) -> None:
        """Forget all rows; the next one has this number. The memory is kept."""
        self.clock[0] = self.first = number
        self._view = None

    def _set_arrays(self, arrays: dict[Any, np.ndarray], torch_names: set) -> None:
        """These are the columns from now on; all that was made for the earlier ones goes."""
        self.arrays, self._torch_names = arrays, torch_names
        self._put: Callable[..., int] = nothing_stored
        self.put_values: Callable[..., int] = nothing_stored
        if arrays and self.capacity > 1:  # where a single slot is written half, nothing is left
            modulo = self.capacity if self._wraps else 2**62
            self._put, self.put_values = compile_writers(arrays, torch_names, self.capacity, modulo, self.clock)
        self.put = self._put if self.frames is None else nothing_stored
        self.holds_objects = any(array.dtype == object for array in arrays.values())
        # rounds that do not wrap differ in length, and are large
        self._taken = Gather(arrays, torch_names, self.frames, 4 if self._wraps else 1)
        self.gather, self.gather_again = self._taken.rows, self._taken.again

    def plan(self, columns: Mapping) -> int:
        """Bytes that rows like these will need; BufferMemoryError if they cannot be had."""
        needed = 0
        if self.frames is not None:
            columns, needed = self.frames.plan(columns)
        return needed + check_memory(self.name, self.capacity, tree.map(_array, _flat(columns)), self._overhead)

    # ---- in
    def append(self, columns: Mapping) -> None:
        """
        Overview:
            Store rows, wrapping at the end. What does not fit is an error that names the column. More rows than there
            are slots: the last ones stay.
        """
        flat = _flat(columns if self.frames is None else self.frames.encode(columns))
        if self._put(Batch.of(flat)):
            return
        given = tree.map(_array, flat)
        n = rows_of(given)
        if not self.arrays:
            check_memory(self.name, self.capacity, given, self._overhead)
            arrays = {name: _zeros(self.capacity, array) for name, array in given.items()}
            self._set_arrays(arrays, {name for name, column in flat.items() if isinstance(column, torch.Tensor)})
        if set(given) != set(self.arrays):
            names, stored = (', '.join(sorted(map(_label, part))) for part in (given, self.arrays))
            raise KeyError(f'{self.name}: got the columns {names}, the first rows had {stored}')
        fitted = {name: self._fitted(name, column, n) for name, column in given.items()}
        kept = min(n, self.capacity)
        slots = np.arange(self.clock[0] + n - kept, self.clock[0] + n) % self.capacity
        for name, column in fitted.items():
            self.arrays[name][slots] = column[n - kept :]
        self.clock[0] += n

    def _fitted(self, name: Any, column: np.ndarray, n: int) -> np.ndarray:
        """The column in a form that its array takes; the array may get another dtype for it."""
        array, what = self.arrays[name], f"{self.name}: column '{_label(name)}'"
        fits = column.shape == (n, *array.shape[1:])
        if not fits and column.shape[:1] == (n,) and (self._ragged or array.dtype == object):
            if array.dtype != object:
                logger.warning('%s becomes objects, as its rows differ in shape', what)
                rows = torch.from_numpy(array) if name in self._torch_names else array
                self._set_arrays({**self.arrays, name: object_column(list(rows))}, self._torch_names - {name})
            return object_column(list(column))
        if not fits:
            raise ValueError(
                f'{what} stores rows of shape {array.shape[1:]} and dtype {array.dtype}, got shape {column.shape} and '
                f'dtype {column.dtype} for {n} row(s)'
            )
        if column.dtype == array.dtype or array.dtype == object:
            return column
        kinds = {array.dtype.kind, column.dtype.kind}
        if kinds - set('biufc') or ('b' in kinds and len(kinds) > 1):
            raise ValueError(f'{what} stores {array.dtype}, got {column.dtype}')
        wide = np.promote_types(array.dtype, column.dtype)
        if wide != array.dtype and not np.array_equal(column.astype(array.dtype), column):
            logger.warning('%s becomes %s, %s cannot hold what was pushed', what, wide, array.dtype)
            self._set_arrays({**self.arrays, name: array.astype(wide)}, self._torch_names)
        return column

    def mend(self, n: int) -> np.ndarray:
        """
        Overview:
            After a push of ``n`` rows that failed: the oldest rows, which lie where it began to write, may be half
            overwritten and become copies of the oldest one behind them.
        Returns:
            - slots (:obj:`np.ndarray`): of these rows
        """
        n = n if self.clock[0] >= self.capacity > n else 0
        slots = (self.clock[0] + np.arange(n)) % self.capacity
        for array in self.arrays.values():
            array[slots] = array[(self.clock[0] + n) % self.capacity]
        return slots

    def add_column(self, name: Any, rows: np.ndarray) -> None:
        """A further column like these rows; it is zero (None for objects) in all slots."""
        self._set_arrays({**self.arrays, name: _zeros(self.capacity, rows)}, self._torch_names)

    def grow(self, capacity: int) -> None:
        """More slots, for a ring that has not gone round."""
        self.capacity, used = capacity, self.clock[0]
        self._set_arrays({name: _zeros(capacity, a, a[:used]) for name, a in self.arrays.items()}, self._torch_names)

    # ---- out
    def __contains__(self, name: object) -> bool:
        return name in self.arrays or (self._taken.nested and name in self.names())

    def names(self) -> list[str]:
        """The columns, nested ones by their outermost name."""
        return list(dict.fromkeys(key[0] if type(key) is tuple else key for key in self.arrays))

    def column(self, name: str, slots: np.ndarray | None = None) -> Any:
        """A column of the rows in these slots (trusted), in fresh memory; of all slots, sharing memory, without any."""
        keys = [key for key in self.arrays if key == name or (type(key) is tuple and key[0] == name)]
        if not keys:
            raise KeyError(f"{self.name} has no column '{name}'; it has: {', '.join(self.names()) or 'none yet'}")
        if slots is not None and self.frames is not None:
            return self.gather(slots)[name]
        arrays = {key: self.arrays[key] if slots is None else self.arrays[key].take(slots, 0) for key in keys}
        return self._taken.columns(arrays)[name]

    def in_time(self) -> Any:
        """A ReplayBuffer over these rows: what comes before and after them. A column ``env_id`` tells envs apart."""
        if self._view is None:
            replay_buffer = load_attribute('nervex.data.replay_buffer:ReplayBuffer')
            self._view = replay_buffer.over(self)
        return self._view

    # ---- state
    def state_dict(self, used: int) -> dict[str, Any]:
        """Columns of the first ``used`` slots as tensors (objects as lists), and the frames."""
        columns = []
        for name, array in self.arrays.items():
            part = array[:used]
            data = list(part) if array.dtype == object else torch.from_numpy(part.copy())
            path = list(name) if type(name) is tuple else name
            columns.append({'name': path, 'torch': name in self._torch_names, 'data': data})
        frames = None if self.frames is None else self.frames.state_dict()
        return {'next_row': self.clock[0], 'columns': columns, 'frames': frames}

    def load_state_dict(self, state: Mapping) -> None:
        """Put back what ``state_dict`` gave; everything else is forgotten."""
        arrays, torch_names = {}, set()
        for column in state['columns']:
            name = tuple(column['name']) if isinstance(column['name'], list) else column['name']
            data = object_column(column['data']) if isinstance(column['data'], list) else column['data'].numpy()
            arrays[name] = _zeros(self.capacity, data, data)
            if column['torch']:
                torch_names.add(name)
        self._set_arrays(arrays, torch_names)
        self.restart(state['next_row'])
        if self.frames is not None:
            self.frames.load_state_dict(state['frames'])


def nothing_stored(*_: Any) -> int:
    """The quick way while the columns are not known, or where there is none."""
    return 0


def rows_of(columns: Mapping) -> int:
    """The number of rows, read off the first column."""
    return len(next(iter(columns.values()), ()))


def _zeros(capacity: int, like: np.ndarray, first: Any = ()) -> np.ndarray:
    """Slots for rows like these, zero or None where they are objects; the first slots hold the rows ``first``."""
    array = np.zeros((capacity, *like.shape[1:]), dtype=like.dtype)
    if like.dtype == object:
        array.fill(None)
    if len(first):
        array[: len(first)] = first
    return array


def _flat(columns: Mapping) -> dict[Any, Any]:
    """All columns; the key is the name, or the tuple of names where columns are nested."""
    return {path if len(path) > 1 else path[0]: column for path, column in tree.zip(columns)}


def _array(column: Any) -> np.ndarray:
    column = np.asarray(numpy_column(column))
    return column.astype(object) if column.dtype.kind in 'USMmV' else column


def _label(name: Any) -> str:
    return tree.label(name) if type(name) is tuple else str(name)
