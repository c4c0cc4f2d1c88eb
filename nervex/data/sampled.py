"""Sampled: a Batch from a buffer, with the columns that tell where its rows come from."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nervex.data.batch import Batch, Row


class UniqueIds(np.ndarray):
    """
    Overview:
        Numbers of stored items as an int64 array; a single one reads as ``'<buffer>_<n>'``, so that ids of several
        buffers can be told apart when they are mixed.
    """

    buffer_name: str

    @classmethod
    def of(cls, numbers: np.ndarray, buffer_name: str) -> UniqueIds:
        """Ids of the given buffer."""
        ids = numbers.view(cls)
        ids.buffer_name = buffer_name
        return ids

    def __array_finalize__(self, source: Any) -> None:
        self.buffer_name = getattr(source, 'buffer_name', '')

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return found if isinstance(found, np.ndarray) else f'{self.buffer_name}_{found}'

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def tolist(self) -> list[str]:
        """The ids as strings."""
        return [f'{self.buffer_name}_{n}' for n in self.view(np.ndarray).tolist()]

    def __repr__(self) -> str:
        return f'UniqueIds({self.tolist()})'

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return UniqueIds.of, (np.array(self.view(np.ndarray)), self.buffer_name)


class Sampled(Batch):
    """
    Overview:
        A sample. The columns in ``SAMPLE_COLUMNS`` are made when somebody asks for them (by name, or by reading rows),
        because most learners never do. ``keys()`` and ``to_torch()`` show those that exist.
    """

    __slots__ = ('_describe',)

    @classmethod
    def drawn(cls, columns: dict[str, Any], describe: Callable[[], dict[str, Any]]) -> Sampled:
        """A sample of these columns; ``describe()`` gives the additional ones."""
        self = cls.of(columns)
        _set_describe(self, describe)
        return self

    def describe(self) -> Sampled:
        """Make all additional columns now."""
        make = getattr(self, '_describe', None)
        if make is not None:
            _set_describe(self, None)
            for name, column in make().items():
                self._columns.setdefault(name, column)
        return self

    def __getattr__(self, name: str) -> Any:
        if name == '_describe':  # a slot that was never set: the sample was cut, joined or copied
            return None
        return super().__getattr__(name) if name in self._columns else self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns or name in self.describe()._columns

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            columns = self._columns
            return columns[key] if key in columns else self.describe()._columns[key]
        self.describe()
        return Batch.of(self._columns)[key]

    def __iter__(self) -> Iterator[Row]:
        return iter(Batch.of(self.describe()._columns))

    def __reduce__(self) -> tuple:
        return Batch.of, (dict(self.describe()._columns),)

    def copy(self) -> Batch:
        """A plain Batch over the same columns, additional ones included."""
        return Batch.of(self.describe()._columns).copy()


_set_describe = Sampled._describe.__set__  # type: ignore[attr-defined]
