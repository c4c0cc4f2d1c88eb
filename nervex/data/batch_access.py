"""Quick attribute access to the columns that most Batches have."""

from __future__ import annotations

from typing import Any

from nervex.data.names import USUAL_COLUMNS


class UsualColumns:
    """
    Overview:
        Attributes for the usual columns of a Batch. They save the detour over ``__getattr__``, which takes four times
        as long; a column that is not there goes on to it.
    """

    __slots__ = ()


def _attribute(name: str) -> property:
    def column(self: Any) -> Any:
        try:
            return self._columns[name]
        except KeyError:
            raise AttributeError(name) from None  # sends Python to __getattr__

    return property(column)


for _name in USUAL_COLUMNS:
    setattr(UsualColumns, _name, _attribute(_name))
