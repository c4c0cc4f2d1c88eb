"""Agents of different sizes as the rows of one array."""

from collections.abc import Sequence

import numpy as np


def padded(rows: Sequence[np.ndarray], width: int | None = None, fill: float = 0.0) -> np.ndarray:
    """
    Overview:
        Vectors of different lengths as one array, an agent a row; ``fill`` stands behind the shorter ones.
    Arguments:
        - width (:obj:`int | None`): of the array; None is the length of the longest
    Returns:
        - array (:obj:`np.ndarray`): (A, width) float32
    """
    sizes = [len(row) for row in rows]
    width = max(sizes) if width is None else width
    out = np.full((len(rows), width), fill, np.float32)
    for k, (row, size) in enumerate(zip(rows, sizes)):
        out[k, :size] = row
    return out


def legal_mask(counts: Sequence[int]) -> np.ndarray:
    """(A, n) float32: 1 for the first ``counts[k]`` actions of agent k, 0 behind them; n is the largest count."""
    return padded([np.ones(count, np.float32) for count in counts])
