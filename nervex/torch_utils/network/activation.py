"""Activations by name, as functions and as modules: a module call costs as much as the activation of a small layer."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nervex.utils.errors import UnknownNameError, unknown_name

Activation = Callable[[Tensor], Tensor]

_MODULES: dict[str, Callable[[], nn.Module]] = {
    'relu': nn.ReLU,
    'tanh': nn.Tanh,
    'sigmoid': nn.Sigmoid,
    'elu': nn.ELU,
    'gelu': nn.GELU,
    'silu': nn.SiLU,
    'swish': nn.SiLU,
    'leaky_relu': nn.LeakyReLU,
    'prelu': nn.PReLU,
}
_FUNCTIONS: dict[str, Activation] = {'relu': torch.relu, 'tanh': torch.tanh, 'sigmoid': torch.sigmoid, 'swish': F.silu}


def get_activation(activation: str | Activation) -> Activation:
    """The function of that name; a function or module is returned as it is."""
    if callable(activation):
        return activation
    known = [name for name in _MODULES if name != 'prelu']  # which has a weight, and is a module only
    if activation not in known:
        raise UnknownNameError(unknown_name('activation', activation, known))
    return _FUNCTIONS.get(activation) or getattr(F, activation)


def build_activation(activation: str | nn.Module | None) -> nn.Module:
    """A module by the activation's name; None is the identity, and a module is taken as it is."""
    if activation is None or isinstance(activation, nn.Module):
        return nn.Identity() if activation is None else activation
    if activation not in _MODULES:
        raise ValueError(unknown_name('activation', activation, _MODULES))
    return _MODULES[activation]()
