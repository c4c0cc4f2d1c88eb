"""Random slots for uniform sampling, drawn ahead in large blocks because small draws cost more than they give."""
from __future__ import annotations

from typing import Any

import numpy as np

_BLOCK = 8192


class IndexSource:
    """
    Overview:
        Independent uniform integers below a bound. While the bound stays the same (a full ring), they come from a block
        drawn ahead; the state, block included, can be saved, so that a resumed run draws the same numbers.
    """

    def __init__(self, seed: Any = None) -> None:
        self.rng = np.random.default_rng(seed)
        self._block = np.empty(0, dtype=np.int64)
        self._bound = -1
        self._next = 0

    def draw(self, n: int, bound: int) -> np.ndarray:
        """``n`` integers in [0, bound). The array may be a view of the block: do not change it."""
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

    def state_dict(self) -> dict[str, Any]:
        """Generator state and what is left of the block."""
        import torch
        return {'generator': self.rng.bit_generator.state, 'bound': self._bound,
                'left': torch.from_numpy(self._block[self._next:].copy())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the draws from where ``state_dict`` was called."""
        self.rng.bit_generator.state = state['generator']
        left = state['left'].numpy()
        self._bound = state['bound']
        self._block = np.zeros(_BLOCK, dtype=np.int64)
        self._next = _BLOCK - len(left)
        self._block[self._next:] = left
