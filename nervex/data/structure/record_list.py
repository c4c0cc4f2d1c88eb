"""RecordList: a list that remembers what was removed from it."""

from __future__ import annotations

from typing import Any


class RecordList(list):
    """
    Overview:
        A list whose deleted and replaced items stay readable in ``removed``, in the order in which they went.
    Interfaces:
        removed, take_removed, and everything of list
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.removed: list[Any] = []

    def take_removed(self) -> list[Any]:
        """The removed items; they are forgotten here."""
        removed, self.removed = self.removed, []
        return removed

    def __setitem__(self, index: Any, value: Any) -> None:
        self.removed += self[index] if isinstance(index, slice) else [self[index]]
        super().__setitem__(index, value)

    def __delitem__(self, index: Any) -> None:
        self.removed += self[index] if isinstance(index, slice) else [self[index]]
        super().__delitem__(index)

    def pop(self, index: Any = -1) -> Any:
        """Remove an item and return it."""
        item = self[index]
        del self[index]
        return item

    def remove(self, value: Any) -> None:
        """Remove the first item that equals ``value``."""
        del self[self.index(value)]

    def clear(self) -> None:
        """Remove all items."""
        del self[:]
