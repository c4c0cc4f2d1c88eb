"""The block of memory that a step writes: observations, rewards, and what is known about finished episodes."""

from typing import Any

import numpy as np

from nervex.envs.hosting.layout import allocate, row_of, tree_leaves, tree_map

SLOTS = 3  # a block stays valid while the next one is written, and the one after that
ALIGNMENT = 64


class BlockStore:
    """
    Overview:
        ``obs[slot]`` and ``reward[slot]`` hold one step of all envs; steps go round the slots. ``final``, ``done``,
        ``truncated``, ``episode_return`` and ``episode_length`` describe the episodes that ended in the last step.
        All numeric arrays lie in one buffer, which may be shared between processes; object columns are private.
    Arguments:
        - layout (:obj:`Any`): tree of Leafs, see ``hosting.layout``
        - num (:obj:`int`): envs
        - reward_size (:obj:`int`): 1, or the length of a vector reward
        - buffer (:obj:`Any`): memory of ``BlockStore.nbytes(...)`` zeroed bytes, or None for private memory
        - private (:obj:`bool`): True keeps the observations out of the buffer
    """

    def __init__(self, layout: Any, num: int, reward_size: int = 1, buffer: Any = None, private: bool = False) -> None:
        self.layout, self.num, self.reward_size, self._private = layout, num, reward_size, private
        if buffer is None:
            buffer = np.zeros(self.nbytes(layout, num, reward_size), np.uint8)
        cursor = _Cursor(buffer)
        self.obs, self.reward = [], []
        for _ in range(SLOTS):
            self.obs.append(allocate(layout, num) if private else _tree(cursor, layout, num))
            self.reward.append(cursor.array((num,) if reward_size == 1 else (num, reward_size), np.float32))
        self.final = allocate(layout, num) if private else _tree(cursor, layout, num)
        self.done, self.truncated = cursor.array((num,), bool), cursor.array((num,), bool)
        self.episode_return, self.episode_length = cursor.array((num,), np.float64), cursor.array((num,), np.int64)
        self.rows = [[row_of(block, k) for k in range(num)] for block in self.obs]
        self.final_rows = [row_of(self.final, k) for k in range(num)]

    @staticmethod
    def nbytes(layout: Any, num: int, reward_size: int = 1) -> int:
        """The bytes that the numeric arrays need (with room for alignment)."""
        row = sum(leaf.dtype.itemsize * int(np.prod(leaf.shape)) for leaf in tree_leaves(layout) if not leaf.is_object)
        arrays = (SLOTS + 1) * (len(tree_leaves(layout)) + 1) + 4
        return (SLOTS + 1) * num * row + SLOTS * num * reward_size * 4 + num * 18 + arrays * 2 * ALIGNMENT

    def floats(self, slot: int, low: int, high: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """
        Overview:
            What must be finite in rows low..high of a slot: pairs (flat view, zeros of its length). Scalar rewards are
            not among them: whoever adds them up sees NaN in the sums.
        """
        leaves = [leaf for leaf in tree_leaves(self.obs[slot]) if leaf.dtype.kind == 'f']
        leaves += [self.reward[slot]] if self.reward_size > 1 else []
        views = [leaf[low:high].reshape(-1) for leaf in leaves]
        return [(view, np.zeros(len(view), view.dtype)) for view in views if len(view)]

    def row_floats(self, slot: int, low: int, high: int) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """The same for the observation of each row alone."""
        leaves = [leaf for leaf in tree_leaves(self.obs[slot]) if leaf.dtype.kind == 'f']
        zeros = [np.zeros(leaf[0].size, leaf.dtype) for leaf in leaves]
        return [[(leaf[k].reshape(-1), zero) for leaf, zero in zip(leaves, zeros)] for k in range(low, high)]


class _Cursor:
    """Cuts aligned arrays from a buffer, one after the other."""

    def __init__(self, buffer: Any) -> None:
        self._bytes = np.frombuffer(buffer, np.uint8)
        self._at = 0

    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        begin = self._bytes.ctypes.data + self._at
        start = self._at + (-begin) % ALIGNMENT
        self._at = start + size
        return self._bytes[start : self._at].view(dtype).reshape(shape)


def _tree(cursor: _Cursor, layout: Any, num: int) -> Any:
    return tree_map(
        lambda leaf: allocate(leaf, num) if leaf.is_object else cursor.array((num, *leaf.shape), leaf.dtype), layout
    )
