"""Where columns cross between NumPy and torch, and between the CPU and a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nervex.utils import tree


def to_tensors(values: Any, device: torch.device | None = None) -> Any:
    """
    Overview:
        Arrays and tensors in nested containers as tensors on ``device`` (None: where they are; arrays on the CPU, over
        the same memory). float64 becomes float32, everything else keeps its dtype; what is neither stays as it is.
    """
    return tree.map(lambda leaf: _tensor(leaf, device), values)


def to_arrays(values: Any) -> Any:
    """Tensors in nested containers as arrays, over the same memory where they are on the CPU; the rest as it is."""
    return tree.map(_array, values)


def as_float32(values: Any) -> Any:
    """Arrays in nested containers with float64 as float32, as models take them; anything else as it is."""
    if type(values) is np.ndarray:
        return values if values.dtype != np.float64 else values.astype(np.float32)
    return tree.map(as_float32, values) if type(values) is dict else values


def _tensor(value: Any, device: torch.device | None) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in 'biuf':
            return value
        value = torch.from_numpy(value if value.flags.writeable else value.copy())
    elif not isinstance(value, torch.Tensor):
        return value
    dtype = torch.float32 if value.dtype is torch.float64 else value.dtype
    return value.to(device, dtype) if dtype is not value.dtype or device not in (None, value.device) else value


def _array(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().cpu()
    return (value.float() if value.dtype is torch.bfloat16 else value).numpy()  # NumPy has no bfloat16
