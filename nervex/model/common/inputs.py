"""What a model finds in its input, and how many action heads it has."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from nervex.torch_utils.network.shapes import as_shape
from nervex.utils.errors import UnknownNameError


def action_heads(action_dim: int | Sequence[int]) -> tuple[int, ...] | int:
    """
    Overview:
        Number of actions: an int (or a shape of length 1) is one head; a longer list is one head for each entry.
    """
    shape = as_shape(action_dim, 'action_dim')
    return shape[0] if len(shape) == 1 else shape


def entry_of(data: Any, key: str) -> Any:
    """An entry that a model's input must have."""
    if isinstance(data, Tensor) or key not in data:
        got = 'one tensor' if isinstance(data, Tensor) else ', '.join(map(repr, data))
        raise UnknownNameError(f"this model needs '{key}' in its input, got {got}")
    return data[key]


def obs_of(data: Any) -> Any:
    """The observation of a model's input: ``data['obs']``, or ``data`` itself if it is a bare tensor."""
    if isinstance(data, Tensor):
        return data
    try:
        return data['obs']
    except (KeyError, TypeError, IndexError) as error:
        got = sorted(data) if isinstance(data, dict) else type(data).__name__
        raise UnknownNameError(f"a model takes a tensor or a dict with 'obs', got {got}") from error
