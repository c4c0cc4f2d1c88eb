"""The weights of a policy on their way from the learner to actors and evaluators."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

_AS = {torch.bfloat16: (torch.int16, 'bfloat16')}  # types that NumPy does not have travel as their bits


def pack(state: dict[str, Any]) -> dict[str, Any]:
    """A state dict with arrays in place of tensors, on the same memory where that is the CPU's: nothing is copied."""
    return {key: _packed(value) for key, value in state.items()}


def _packed(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.dtype in _AS:
            bits, name = _AS[value.dtype]
            return _Bits(value.view(bits).numpy(), name)
        return value.numpy()
    return pack(value) if isinstance(value, dict) else value


class _Bits:
    """An array that stands for a tensor of another type."""

    def __init__(self, array: np.ndarray, dtype: str) -> None:
        self.array, self.dtype = array, dtype


def load(mode: Any, arrays: dict[str, Any]) -> None:
    """Copy what ``pack`` gave into a collect or eval mode; the arrays may be read-only, on shared memory."""
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', message='The given NumPy array is not writable')
        state = _tensors(arrays)
    mode.load_state_dict(state)


def _tensors(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tensors(item) for key, item in value.items()}
    if isinstance(value, _Bits):
        return torch.from_numpy(value.array).view(getattr(torch, value.dtype))
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
