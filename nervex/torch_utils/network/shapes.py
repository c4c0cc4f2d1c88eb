"""Sizes as a config gives them, the dtype of weights, and the error for an input that does not fit."""

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.utils.errors import NervexError


class KnowsDtype(nn.Module):
    """
    Overview:
        Remembers the dtype of its weights: to ask a parameter in every call costs as much as a small layer.
    """

    weights_dtype = torch.float32

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        super()._apply(*args, **kwargs)
        self.weights_dtype = next(self.parameters()).dtype
        return self


class InputShapeError(NervexError, ValueError, RuntimeError):
    """A tensor does not fit the layer it meets; the text names what the layer expects and what came."""


def as_shape(dim: int | Sequence[int], what: str = 'obs_dim') -> tuple[int, ...]:
    """A size given as an int or as a shape, as a tuple."""
    try:
        shape = tuple(map(operator.index, dim if isinstance(dim, Iterable) else (dim,)))
    except TypeError:
        shape = ()
    if not shape or min(shape) < 1:
        raise ValueError(f'{what} is a positive int or a shape such as [4, 84, 84], got {dim!r}')
    return shape


def as_size(dim: int | Sequence[int], what: str = 'obs_dim') -> int:
    """The number of elements of a size given as an int or as a shape."""
    return math.prod(as_shape(dim, what))


def misfit(x: Tensor, shape: Sequence[int | str], name: str = 'obs') -> InputShapeError:
    """The error for an input whose last axes should have had ``shape``."""
    expected = ', '.join(map(str, shape))
    return InputShapeError(f'{name} of shape {tuple(x.shape)} does not fit: the first layer expects (..., {expected})')


def as_dtype(x: Any, dtype: torch.dtype, name: str = 'obs') -> Tensor:
    """Bytes, integers and other floats in the dtype of the weights."""
    if not isinstance(x, Tensor):
        raise TypeError(f'{name} is a {type(x).__name__}, expected a tensor: torch.as_tensor(...)')
    return x.to(dtype)


def flattened(x: Tensor, shape: Sequence[int], name: str = 'obs') -> Tensor:
    """The last axes of ``x``, which must have ``shape``, as one axis."""
    if tuple(x.shape[-len(shape) :]) != tuple(shape):
        raise misfit(x, shape, name)
    return x if len(shape) == 1 else x.flatten(-len(shape))
