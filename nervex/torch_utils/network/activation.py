"""Activation functions by name. As plain functions: a module call costs as much as the activation of a small layer."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from nervex.utils.errors import UnknownNameError, unknown_name

Activation = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Activation] = {
    'relu': torch.relu,
    'tanh': torch.tanh,
    'sigmoid': torch.sigmoid,
    'elu': F.elu,
    'gelu': F.gelu,
    'silu': F.silu,
    'leaky_relu': partial(F.leaky_relu, negative_slope=0.01),
}


def get_activation(activation: str | Activation) -> Activation:
    """The function of that name; a function or module is returned as it is."""
    if callable(activation):
        return activation
    if activation not in _ACTIVATIONS:
        raise UnknownNameError(unknown_name('activation', activation, _ACTIVATIONS))
    return _ACTIVATIONS[activation]
