"""Random numbers for sampling, drawn ahead in large blocks because small draws cost more than they give."""

from __future__ import annotations

from typing import Any

import numpy as np

_BLOCK = 8192


class IndexSource:
    """
    Overview:
        Independent uniform integers below a bound, and fractions in [0, 1). Fractions, and integers while their bound
        stays the same (a full ring), come from blocks drawn ahead; the state, blocks included, can be saved, so that a
        resumed run draws the same numbers.
    """

    def __init__(self, seed: Any = None) -> None:
        self.rng = np.random.default_rng(seed)
        self._block = np.empty(0, dtype=np.int64)
        self._bound = -1
        self._next = 0
        self._fractions = np.empty(0)
        self._used = _BLOCK

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

    def fractions(self, n: int) -> np.ndarray:
        """``n`` numbers in [0, 1). The array may be a view of the block: do not change it."""
        start = self._used
        end = start + n
        if end > _BLOCK:
            if n > _BLOCK // 4:
                return self.rng.random(n)
            self._fractions, start, end = self.rng.random(_BLOCK), 0, n
        self._used = end
        return self._fractions[start:end]

    def state_dict(self) -> dict[str, Any]:
        """Generator state and what is left of the blocks."""
        import torch

        return {
            'generator': self.rng.bit_generator.state,
            'bound': self._bound,
            'left': torch.from_numpy(self._block[self._next :].copy()),
            'fractions': torch.from_numpy(self._fractions[self._used :].copy()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the draws from where ``state_dict`` was called."""
        self.rng.bit_generator.state = state['generator']
        left = state['left'].numpy()
        self._bound = state['bound']
        self._block = np.zeros(_BLOCK, dtype=np.int64)
        self._next = _BLOCK - len(left)
        self._block[self._next :] = left
        fractions = state['fractions'].numpy()
        self._fractions, self._used = np.zeros(_BLOCK), _BLOCK - len(fractions)
        self._fractions[self._used :] = fractions
