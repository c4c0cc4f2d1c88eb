"""Arrays, Batches and rows as what a checkpoint may hold, and back: it loads with ``weights_only=True``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nervex.data import Batch

_ARRAY, _BATCH, _TUPLE = '__array__', '__batch__', '__tuple__'
_PLAIN = (bool, int, float, str, type(None))


def to_state(value: Any) -> Any:
    """
    Overview:
        Nested dicts, lists, tuples, Batches, arrays and tensors -> nested dicts and lists of tensors and plain values.
        A tensor that is a view is copied, so that nothing larger is stored. Anything else is an error that names its
        type.
    """
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        if array.dtype == object:
            return {_ARRAY: [to_state(item) for item in array.tolist()], 'shape': list(array.shape)}
        return {
            _ARRAY: torch.from_numpy(array.view(np.uint8).copy() if array.ndim else array.reshape(1).view(np.uint8)),
            'dtype': array.dtype.str,
            'shape': list(np.shape(value)),
        }
    if isinstance(value, Batch):
        return {_BATCH: {key: to_state(value[key]) for key in value.keys()}}
    if isinstance(value, dict):
        return {key: to_state(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return {_TUPLE: [to_state(item) for item in value]}
    if isinstance(value, list):
        return [to_state(item) for item in value]
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f'a {type(value).__name__} cannot be saved in a run state; use arrays, tensors, numbers or strings')


def from_state(value: Any) -> Any:
    """Put back what ``to_state`` gave."""
    if isinstance(value, dict):
        if _ARRAY in value:
            return _array(value)
        if _BATCH in value:
            return Batch.of({key: from_state(item) for key, item in value[_BATCH].items()})
        if _TUPLE in value:
            return tuple(from_state(item) for item in value[_TUPLE])
        return {key: from_state(item) for key, item in value.items()}
    return [from_state(item) for item in value] if isinstance(value, list) else value


def _array(state: dict) -> np.ndarray:
    if 'dtype' not in state:
        array = np.empty(state['shape'], dtype=object)
        array.reshape(-1)[:] = [from_state(item) for item in state[_ARRAY]]
        return array
    return state[_ARRAY].numpy().view(np.dtype(state['dtype'])).reshape(state['shape'])
