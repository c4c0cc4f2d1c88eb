"""A window of steps as an actor hands it to ``_get_train_sample``."""

from __future__ import annotations

from typing import Any

from nervex.data import Batch


class TrajBlock(Batch):
    """
    Overview:
        Steps of one env (T, ...) or of all of them (T, N, ...), time first. The last ``repeats`` steps come again at
        the head of the next block, and as many at its own head were in the one before; 0 for whole episodes.
    """

    __slots__ = ('repeats',)

    @classmethod
    def cut(cls, columns: dict[str, Any], repeats: int) -> TrajBlock:
        """A block over these columns; nothing is copied."""
        block = cls.of(columns)
        _set_repeats(block, repeats)
        return block


_set_repeats = TrajBlock.repeats.__set__  # type: ignore[attr-defined]


def repeats_of(traj: Batch, default: int) -> int:
    """Steps of a block that come again; ``default`` for a Batch that does not say. Never more than it has steps."""
    return min(getattr(traj, 'repeats', default), len(traj))
