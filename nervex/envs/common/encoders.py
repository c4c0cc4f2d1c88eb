"""Encodings of integers as float32 vectors, for hand-made observations."""

from collections.abc import Callable, Sequence

import numpy as np


def one_hot(value: int | Sequence[int] | np.ndarray, num: int, clip: bool = False) -> np.ndarray:
    """
    Overview:
        One-hot rows of length ``num``. A value outside of [0, num) is an error, or clipped to the range if ``clip``.
    Shapes:
        - value: any shape :math:`(*)`; returns :math:`(*, num)`
    """
    index = np.asarray(value, dtype=np.int64)
    if clip:
        index = np.clip(index, 0, num - 1)
    elif index.size and (index.min() < 0 or index.max() >= num):
        raise ValueError(f'one_hot: values must lie in [0, {num - 1}], got {index.min()}..{index.max()}; or clip=True')
    out = np.zeros((*index.shape, num), np.float32)
    np.put_along_axis(out, index[..., None], 1.0, axis=-1)
    return out


def sqrt_one_hot(value: int | Sequence[int] | np.ndarray, max_value: int) -> np.ndarray:
    """One-hot of floor(sqrt(value)), floor(sqrt(max_value)) + 1 places: fine for small values, coarse for large."""
    root = np.floor(np.sqrt(np.clip(np.asarray(value, np.float64), 0, max_value))).astype(np.int64)
    return one_hot(root, int(np.floor(np.sqrt(max_value))) + 1)


def div_one_hot(value: int | Sequence[int] | np.ndarray, max_value: int, ratio: int) -> np.ndarray:
    """One-hot of value // ratio, with max_value // ratio + 1 places."""
    return one_hot(np.clip(np.asarray(value, np.int64), 0, max_value) // ratio, max_value // ratio + 1)


def binary_encode(value: int | Sequence[int] | np.ndarray, bit_num: int) -> np.ndarray:
    """
    Overview:
        The binary digits, most significant first. Values with more than ``bit_num`` digits show the largest number.
    Shapes:
        - value: any shape :math:`(*)`; returns :math:`(*, bit_num)`
    """
    number = np.clip(np.asarray(value, np.int64), 0, (1 << bit_num) - 1)
    return ((number[..., None] >> np.arange(bit_num - 1, -1, -1)) & 1).astype(np.float32)


def batch_encode(values: Sequence[int], encode: Callable[..., np.ndarray], **kwargs: int) -> np.ndarray:
    """Encode several values with one of the functions above and join the vectors."""
    return np.concatenate([encode(v, **kwargs) for v in values]) if len(values) else np.zeros(0, np.float32)
