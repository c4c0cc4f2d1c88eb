"""A window of steps as an actor hands it to ``_get_train_sample``."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any

from nervex.data import Batch
from nervex.policy.batched import batched
from nervex.rl_utils.flatten import flatten_time
from nervex.torch_utils.crossing import to_tensors
from nervex.utils import tree


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


tree.register(TrajBlock, lambda block: dict(block.items()), Batch.of)  # what is made of its columns is no window
_set_repeats = TrajBlock.repeats.__set__  # type: ignore[attr-defined]


def repeats_of(traj: Batch, default: int) -> int:
    """Steps of a block that come again; ``default`` for a Batch that does not say. Never more than it has steps."""
    return min(getattr(traj, 'repeats', default), len(traj))


def without_time(samples: Batch, traj: Batch) -> Batch:
    """Samples of all steps of a block, one after the other; those of one env are that already."""
    return samples if traj['done'].ndim == 1 else flatten_time(samples)


def batched_steps(method: Callable[[Any, Batch], Batch]) -> Callable[[Any, Any], Any]:
    """
    Overview:
        The mark ``@batched`` for a ``_get_train_sample`` written for a block of steps. A row-wise override that calls
        it by ``super()`` hands it the documented deque of one env's rows: they become a block, and its samples rows.
        The rows that come again (``_get_traj_overlap``) stay in the deque until the episode is over.
    """

    @batched
    @functools.wraps(method)
    def get_train_sample(self: Any, traj_cache: Any) -> Any:
        if isinstance(traj_cache, Batch):
            return method(self, traj_cache)
        rows = list(traj_cache)
        overlap = 0 if not rows or bool(rows[-1]['done']) else self._get_traj_overlap()
        if len(rows) <= overlap:
            return []
        samples = method(self, TrajBlock.cut(dict(Batch.from_rows(rows).to_numpy().items()), overlap))
        if isinstance(traj_cache, deque):
            for _ in range(len(rows) - overlap):
                traj_cache.popleft()
        return tree.unstack(to_tensors(samples.to_dict()), len(samples))

    return get_train_sample
