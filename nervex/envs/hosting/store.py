"""The block of memory that steps are written to: observations, rewards, and what is known about finished episodes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.layout import Leaf, copy_row
from nervex.utils import tree

SLOTS = 3  # a block stays valid while the next one is written, and the one after that
FINAL = SLOTS  # the place behind the slots: the last observations of episodes that have ended
ALIGNMENT = 64  # of every slot, so that sums over it are rounded alike in each (exact resume)


class BlockStore:
    """
    Overview:
        Each leaf of ``leaves`` has the shape (SLOTS + 1, N, ...), ``reward`` has (SLOTS, N) or (SLOTS, N, k): a step
        writes one slot, and steps go round the slots. The place FINAL, ``done``, ``truncated``, ``episode_return``
        and ``episode_length`` describe the episodes that ended last. All numeric arrays lie in one buffer, which
        processes may share; object columns are private.
    Arguments:
        - layout (:obj:`Any`): tree of Leafs, see ``hosting.layout``
        - num (:obj:`int`): envs
        - reward_size (:obj:`int`): 1, or the length of a vector reward
        - buffer (:obj:`Any`): memory of ``BlockStore.nbytes(...)`` zeroed bytes, or None for private memory
        - private (:obj:`bool`): True keeps the observations out of the buffer
    """

    def __init__(self, layout: Any, num: int, reward_size: int = 1, buffer: Any = None, private: bool = False) -> None:
        self.layout, self.num, self.reward_size = layout, num, reward_size
        shared = _Cursor(np.zeros(self.nbytes(layout, num, reward_size), np.uint8) if buffer is None else buffer)
        own = _Cursor(np.zeros(self.nbytes(layout, num, reward_size), np.uint8)) if private else shared
        self.leaves = tree.map(lambda leaf: own.slots(SLOTS + 1, num, leaf), layout)
        rewards = () if reward_size == 1 else (reward_size,)
        self.reward = shared.slots(SLOTS, num, Leaf(rewards, np.float32))
        self.done, self.truncated = shared.array(num, bool), shared.array(num, bool)
        self.episode_return, self.episode_length = shared.array(num, np.float64), shared.array(num, np.int64)
        self.obs = [tree.index(self.leaves, slot) for slot in range(SLOTS)]
        # a row of an object column is an array without axes, whose only element is the object
        self.rows = [[tree.index(block, (k, ...)) for k in range(num)] for block in self.obs]
        self.final_rows = [tree.index(self.leaves, (FINAL, k, ...)) for k in range(num)]

    @staticmethod
    def nbytes(layout: Any, num: int, reward_size: int = 1) -> int:
        """The bytes that the numeric arrays need, with room for alignment."""
        leaves = [leaf for leaf in tree.leaves(layout) if not leaf.is_object]
        row = sum(leaf.dtype.itemsize * int(np.prod(leaf.shape)) for leaf in leaves) + 4 * reward_size
        return (SLOTS + 1) * (num * row + (len(leaves) + 1) * 2 * ALIGNMENT) + num * 18 + 4 * 2 * ALIGNMENT

    def take(self, slot: int, ids: np.ndarray | None, ended: Sequence[tuple[int, int]] = ()) -> Any:
        """
        Overview:
            A copy of the observations of envs (None: of all); those ``ended`` (place, env) show their episode's last.
        """

        def copied(leaf: np.ndarray) -> np.ndarray:
            block, final = leaf[slot].copy() if ids is None else leaf[slot, ids], leaf[FINAL]
            for k, i in ended:
                block[k] = final[i]
            return block

        return copied(self.leaves) if type(self.leaves) is np.ndarray else tree.map(copied, self.leaves)

    def carry(self, ids: Iterable[int], before: int, slot: int) -> None:
        """Copy the observations of envs that a step leaves out to its slot."""
        for i in ids:
            copy_row(self.rows[slot][i], self.rows[before][i])

    def floats(self, slot: int, low: int, high: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """
        Overview:
            What must be finite in rows low..high of a slot: pairs (flat view, zeros of its length). Scalar rewards are
            not among them: whoever adds them up sees NaN and infinity in the sums.
        """
        leaves = [leaf for leaf in tree.leaves(self.obs[slot]) if leaf.dtype.kind == 'f']
        leaves += [self.reward[slot]] if self.reward_size > 1 else []
        views = [leaf[low:high].reshape(-1) for leaf in leaves]
        return [(view, np.zeros(len(view), view.dtype)) for view in views if len(view)]

    def masks(self, slot: int, low: int, high: int) -> np.ndarray | None:
        """Which actions are legal in rows low..high of a slot; None where the observations do not say so."""
        obs = self.obs[slot]
        mask = obs.get('action_mask') if isinstance(obs, dict) else None
        return None if not isinstance(mask, np.ndarray) or mask.dtype == object else mask[low:high]

    def row_floats(self, slot: int, low: int, high: int) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """The same for the observation of each row alone."""
        leaves = [leaf for leaf in tree.leaves(self.obs[slot]) if leaf.dtype.kind == 'f']
        zeros = [np.zeros(leaf[0].size, leaf.dtype) for leaf in leaves]
        return [[(leaf[k].reshape(-1), zero) for leaf, zero in zip(leaves, zeros)] for k in range(low, high)]


class _Cursor:
    """Cuts aligned arrays from a buffer, one after the other."""

    def __init__(self, buffer: Any) -> None:
        self._bytes = np.frombuffer(buffer, np.uint8)
        self._at = 0

    def slots(self, slots: int, num: int, leaf: Leaf) -> np.ndarray:
        """One leaf of all slots; each slot begins aligned. Objects get an array of their own."""
        if leaf.is_object:
            return np.zeros((slots, num), object)
        step = num * int(np.prod(leaf.shape)) * leaf.dtype.itemsize
        step += -step % ALIGNMENT
        inner = np.empty((num, *leaf.shape), leaf.dtype).strides
        start = self._advance(slots * step)
        return np.ndarray((slots, num, *leaf.shape), leaf.dtype, self._bytes.data, start, (step, *inner))

    def array(self, num: int, dtype: Any) -> np.ndarray:
        """A plain array."""
        size = num * np.dtype(dtype).itemsize
        start = self._advance(size)
        return self._bytes[start : start + size].view(dtype)

    def _advance(self, size: int) -> int:
        start = self._at + -(self._bytes.ctypes.data + self._at) % ALIGNMENT
        self._at = start + size
        return start
