"""Stacks of linear layers."""
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch.nn as nn
from torch import Tensor

from .activation import Activation, get_activation
from .shapes import InputShapeError

LinearType = Callable[[int, int], nn.Module]


class MLP(nn.Module):
    """
    Overview:
        Linear layers, each followed by the activation; with ``out_dim`` a last linear layer without one.
    Arguments:
        - in_dim (:obj:`int`): size of the last axis of the input
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the layers
        - out_dim (:obj:`int | None`): None ends after the last hidden layer
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ... or a function
        - norm (:obj:`bool`): LayerNorm before each activation
        - linear (:obj:`Callable`): makes a layer from (in, out), e.g. a noisy one
        - name (:obj:`str`): what an error calls the input
    Shapes:
        - input :math:`(*, in\\_dim)`, output :math:`(*, out)`
    """

    def __init__(self, in_dim: int, hidden_dim_list: Sequence[int], out_dim: int | None = None,
                 activation: str | Activation = 'relu', norm: bool = False, linear: LinearType = nn.Linear,
                 name: str = 'input') -> None:
        super().__init__()
        sizes = [in_dim, *hidden_dim_list]
        self.in_dim = in_dim
        self.out_dim = sizes[-1] if out_dim is None else out_dim
        self.layers = nn.ModuleList(linear(i, o) for i, o in pairwise(sizes))
        self.norms = nn.ModuleList(nn.LayerNorm(o) for o in sizes[1:]) if norm else None
        self.out = None if out_dim is None else linear(sizes[-1], out_dim)
        self._act = get_activation(activation)
        self._name = name

    def forward(self, x: Tensor) -> Tensor:
        act, given = self._act, x
        try:
            if self.norms is None:
                for layer in self.layers:
                    x = act(layer(x))
            else:
                for layer, norm in zip(self.layers, self.norms):
                    x = act(norm(layer(x)))
            return x if self.out is None else self.out(x)
        except RuntimeError as error:
            raise self._explained(given, error) from error

    def _explained(self, x: Tensor, error: RuntimeError) -> RuntimeError:
        if x.dim() and x.shape[-1] == self.in_dim:
            return error
        return InputShapeError(f'{self._name} of shape {tuple(x.shape)} does not fit: the first layer expects '
                               f'(..., {self.in_dim})')
