"""What a buffer draws: random slots, their rows, and the Batch of these that tells where they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch, nested
from nervex.data.columns import tensor_column
from nervex.data.memory import aligned_empty, take_rows
from nervex.data.names import SAMPLE_COLUMNS
from nervex.utils import tree
from nervex.utils.part_state import HasState

_BLOCK = 8192
_NEITHER = None, None


class IndexSource(HasState):
    """
    Overview:
        Independent uniform integers below a bound, and fractions in [0, 1). Fractions, and integers while their bound
        stays the same (a full ring), come from blocks drawn ahead (a draw of 32 takes 0.2 in place of 2.5 us: row
        ``cart_s32`` of the data bench); the state, blocks included, can be saved, so that a resumed run draws the same
        numbers. What ``draw`` and ``fractions`` answer may be a view of a block: do not change it.
    """

    resume_parts = ('rng', '_bound', '_block', '_next', '_fractions', '_used')

    def __init__(self, seed: Any = None) -> None:
        self.rng = np.random.default_rng(seed)
        self._bound, self._block, self._next = -1, np.zeros(_BLOCK, dtype=np.int64), _BLOCK
        self._fractions, self._used = np.zeros(_BLOCK), _BLOCK

    def draw(self, n: int, bound: int) -> np.ndarray:
        """``n`` integers in [0, bound)."""
        start = self._next
        end = start + n
        if bound == self._bound and end <= _BLOCK:
            self._next = end
            return self._block[start:end]
        if n > _BLOCK // 4 or bound != self._bound:
            self._bound = bound  # the block is kept ahead from the second draw with the same bound on
            self._next = _BLOCK
            return self.rng.integers(0, bound, n)
        self._block = self.rng.integers(0, bound, _BLOCK)
        self._next = n
        return self._block[:n]

    def fractions(self, n: int) -> np.ndarray:
        """``n`` numbers in [0, 1)."""
        start = self._used
        end = start + n
        if end > _BLOCK:
            if n > _BLOCK // 4:
                return self.rng.random(n)
            self._fractions, start, end = self.rng.random(_BLOCK), 0, n
        self._used = end
        return self._fractions[start:end]


class Gather:
    """
    Overview:
        Takes rows out of the arrays of a ring.
    Arguments:
        - arrays (:obj:`dict`): column name (a tuple of names where columns are nested) -> array
        - torch_names (:obj:`set`): columns that were pushed as tensors
        - frames (:obj:`FrameTable | None`): holds the images whose numbers are in the arrays
        - sizes (:obj:`int`): numbers of rows that ``again`` keeps outputs for
    """

    def __init__(self, arrays: dict[Any, np.ndarray], torch_names: set, frames: Any, sizes: int) -> None:
        self._arrays, self._torch_names, self._frames, self._sizes = arrays, torch_names, frames, sizes
        self.nested = any(type(name) is tuple for name in arrays)
        self._takes = [(name, array.take) for name, array in arrays.items()]
        small = all(array[:1].nbytes < 512 for array in arrays.values())
        self._simple = small and not (self.nested or torch_names or frames is not None)
        self._pool: list[np.ndarray] = []  # memory of samples of large rows
        self._outputs: dict[int, list] = {}

    def columns(self, flat: dict) -> dict:
        """Gathered arrays as columns in the form in which they were pushed."""
        for name in self._torch_names & flat.keys():
            flat[name] = torch.from_numpy(flat[name])
        if not self.nested:
            return flat
        paths = ((name if type(name) is tuple else (name,), column) for name, column in flat.items())
        return nested(tree.from_paths(paths))._columns

    def rows(self, slots: np.ndarray) -> dict:
        """The rows at ``slots`` (trusted) in fresh memory, as a dict of columns."""
        if self._simple:
            return {name: take(slots, 0) for name, take in self._takes}
        columns = self.columns({name: take_rows(array, slots, self._pool) for name, array in self._arrays.items()})
        return columns if self._frames is None else self._frames.decode(columns)

    def again(self, slots: np.ndarray) -> tuple[dict, dict | None]:
        """
        Overview:
            The same in one of two alternating outputs, valid until the next but one call for so many rows.
        Returns:
            - columns (:obj:`dict`): as ``rows`` gives them
            - tensors (:obj:`dict | None`): column name -> (column, tensor over its memory), where that is possible
        """
        if self._frames is not None:  # they use memory again by themselves
            return self.rows(slots), None
        pair = self._outputs.get(len(slots))
        if pair is None:
            if len(self._outputs) >= self._sizes:
                self._outputs.clear()
            pair = self._outputs[len(slots)] = [self._output(len(slots)), self._output(len(slots))]
        pair.reverse()
        moves, columns, tensors = pair[0]
        for take, out in moves:
            take(slots, 0, out, 'clip')
        return columns.copy(), tensors

    def _output(self, n: int) -> tuple[list, dict, dict]:
        flat = {name: aligned_empty((n, *array.shape[1:]), array.dtype) for name, array in self._arrays.items()}
        moves = [(take, flat[name]) for name, take in self._takes]
        columns = self.columns(flat)
        plain = {k: c for k, c in columns.items() if not isinstance(c, Batch) and c.dtype not in (np.float64, object)}
        return moves, columns, {name: (column, tensor_column(column)) for name, column in plain.items()}


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
        self = _new(cls)
        _set_columns(self, columns)
        _set_describe(self, describe)
        _set_tensors(self, tensors)
        return self

    def additional(self) -> dict[str, Any]:
        """The additional columns, without making them a part of the sample."""
        made = self._describe[0](*self._describe[1:]) if self._describe is not None else {}
        return made | {name: column for name, column in self._columns.items() if name in SAMPLE_COLUMNS}

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
            source, tensor = ready.get(name, _NEITHER)
            out[name] = tensor if source is column else Batch.of({name: column}).to_torch()[name]
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
        return Batch.of(self.describe()._columns)[key]

    def __reduce__(self) -> tuple:
        return Batch.of, (dict(self.describe()._columns),)

    def get(self, name: str, default: Any = None) -> Any:
        """A column, or ``default`` where there is none of that name."""
        return self[name] if name in self else default

    def copy(self) -> Batch:
        """A plain Batch over the same columns, additional ones included."""
        return Batch.of(self.describe()._columns).copy()


_new, _to_torch = object.__new__, Batch.to_torch
_set_columns = Batch._columns.__set__  # type: ignore[attr-defined, misc]
_set_describe = Sampled._describe.__set__  # type: ignore[attr-defined]
_set_tensors = Sampled._tensors.__set__  # type: ignore[attr-defined]
tree.register(Sampled, lambda sample: sample._columns, Batch.of)


def handed_out(buffer: Any, sample: Sampled, ring: Any, slots: np.ndarray) -> Any:
    """Count a sample of a kind of buffer, show it to the log, and let it be processed."""
    buffer.sampled += len(slots)
    buffer.samples += 1
    if buffer.samples == buffer.log_due:
        buffer.log.sampled(sample)
    return sample if buffer.process_fn is None else buffer.process_fn(sample, ring.in_time(), slots)
