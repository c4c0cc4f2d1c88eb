"""Stacks of linear layers, plain ones and noisy ones."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from nervex.torch_utils.network.activation import Activation, get_activation
from nervex.torch_utils.network.shapes import KnowsDtype, as_dtype, as_shape, as_size, flattened, misfit

LinearType = Callable[[int, int], nn.Module]
#: widths of layers, or layers as dicts, see ``as_layers``
Layers = Sequence[int | dict]


def as_layers(given: Layers, activation: str | Activation) -> list[tuple[int, str | Activation]]:
    """
    Overview:
        Width and activation of each layer. A layer is its width, or ``{'layer_type': 'linear', 'layer_dim': 64,
        'activation': 'tanh'}``, where ``layer_dim`` may stand in a list, and the activation may be left out.
    """
    layers: list[tuple[int, str | Activation]] = []
    for layer in given if isinstance(given, Sequence) else [None]:
        own: dict[str, Any] = dict(layer) if isinstance(layer, dict) else {'layer_dim': [layer]}
        width, act, kind = (own.pop(key, None) for key in ('layer_dim', 'activation', 'layer_type'))
        if isinstance(width, (list, tuple)) and len(width) == 1:
            width = width[0]
        if own or kind not in ('linear', None) or not isinstance(width, int) or width < 1:
            raise ValueError(
                f'hidden_dim_list holds the widths of layers, positive ints, got {given!r}; write [64, 64], or '
                "[{'layer_type': 'linear', 'layer_dim': 64, 'activation': 'tanh'}]"
            )
        layers.append((width, act or activation))
    return layers


class MLP(KnowsDtype, nn.Sequential):
    """
    Overview:
        Linear layers, each followed by the activation; with ``out_dim`` a last linear layer without one. The
        activations are functions, not modules: for small layers that saves as much as the wrapping costs.
    Arguments:
        - in_dim (:obj:`int | Sequence[int]`): size of the last axis of the input, or shape of its last axes
        - hidden_dim_list (:obj:`Layers`): widths of the layers, or layers as dicts, see ``as_layers``
        - out_dim (:obj:`int | None`): None ends after the last hidden layer
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ... or a function
        - norm (:obj:`bool`): LayerNorm before each activation
        - dropout (:obj:`float`): share of the hidden units that training passes leave out, before norm and activation
        - linear (:obj:`Callable`): makes a layer from (in, out), e.g. a noisy one
        - name (:obj:`str`): what an error calls the input
    Shapes:
        - input :math:`(*, in\\_dim)` of any dtype, output :math:`(*, out)`
    """

    def __init__(
        self,
        in_dim: int | Sequence[int],
        hidden_dim_list: Layers,
        out_dim: int | None = None,
        activation: str | Activation = 'relu',
        norm: bool = False,
        linear: LinearType = nn.Linear,
        name: str = 'input',
        dropout: float = 0.0,
    ) -> None:
        given = as_layers(hidden_dim_list, activation)
        sizes = [as_size(in_dim, f'size of {name}'), *(width for width, _ in given)]
        layers = [_hidden(linear(i, o), o, norm, dropout) for i, o in pairwise(sizes)]
        if any(act is not activation for _, act in given):  # then each layer brings its own
            layers = [nn.Sequential(layer, _Act(act)) for layer, (_, act) in zip(layers, given)]
            activation = _unchanged
        super().__init__(*layers, *([] if out_dim is None else [linear(sizes[-1], out_dim)]))
        self.in_shape = as_shape(in_dim)
        self.weights_dtype = next(self.parameters()).dtype
        self.out_dim = sizes[-1] if out_dim is None else out_dim
        self._flat = len(self.in_shape) == 1
        self._ends_linear = out_dim is not None
        self._act = get_activation(activation)
        self._name = name

    def forward(self, x: Tensor) -> Tensor:
        """All layers; an input that does not fit is explained."""
        act, given = self._act, x
        try:
            if x.dtype is not self.weights_dtype or not self._flat:
                x = self._prepared(x)
            if self._ends_linear:
                *hidden, out = self._modules.values()
                for layer in hidden:
                    x = act(layer(x))
                return out(x)
            for layer in self._modules.values():
                x = act(layer(x))
            return x
        except RuntimeError as error:
            raise self._explained(given, error) from error
        except AttributeError:
            self._prepared(given)  # says what is wrong with anything but a tensor
            raise

    def _prepared(self, x: Tensor) -> Tensor:
        """The dtype of the weights; the axes of one input as one."""
        x = as_dtype(x, self.weights_dtype, self._name)
        return x if self._flat else flattened(x, self.in_shape, self._name)

    def _explained(self, x: Tensor, error: RuntimeError) -> RuntimeError:
        """The error to raise instead of torch's, when the input does not fit the first layer."""
        fits = x.dim() > 0 and x.shape[-len(self.in_shape) :] == self.in_shape
        return error if fits else misfit(x, self.in_shape, self._name)


def _hidden(layer: nn.Module, width: int, norm: bool, dropout: float) -> nn.Module:
    more = [*([nn.Dropout(dropout)] if dropout else []), *([nn.LayerNorm(width)] if norm else [])]
    return nn.Sequential(layer, *more) if more else layer


class _Act(nn.Module):
    def __init__(self, activation: str | Activation) -> None:
        super().__init__()
        self._act = get_activation(activation)

    def forward(self, x: Tensor) -> Tensor:
        return self._act(x)


def _unchanged(x: Tensor) -> Tensor:
    return x


def mlp(
    in_dim: int,
    hidden_dim_list: Layers,
    out_dim: int,
    activation: str | Activation = 'relu',
    linear: LinearType = nn.Linear,
) -> nn.Module:
    """An ``MLP`` with an output, or just the one linear layer where there is nothing to stack."""
    return (
        MLP(in_dim, hidden_dim_list, out_dim, activation, linear=linear) if hidden_dim_list else linear(in_dim, out_dim)
    )


class NoiseLinearLayer(nn.Module):
    """
    Overview:
        Linear layer whose weights have factorised Gaussian noise with learned size (Fortunato et al. 2018,
        https://arxiv.org/abs/1706.10295). The noise stays until ``reset_noise``; in evaluation mode there is none.
    Arguments:
        - in_channels (:obj:`int`), out_channels (:obj:`int`): sizes of input and output
        - sigma0 (:obj:`float`): size of the noise at the start, before division by sqrt(in_channels)
    Shapes:
        - input :math:`(*, in\\_channels)`, output :math:`(*, out\\_channels)`
    """

    noise_in: Tensor
    noise_out: Tensor

    def __init__(self, in_channels: int, out_channels: int, sigma0: float = 0.4) -> None:
        super().__init__()
        if sigma0 < 0.0:
            raise ValueError(f'sigma0 is the size of the noise: at least 0, got {sigma0}')
        bound, sigma = 1.0 / math.sqrt(in_channels), sigma0 / math.sqrt(in_channels)
        self.weight_mu = nn.Parameter(torch.empty(out_channels, in_channels).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((out_channels, in_channels), sigma))
        self.bias_mu = nn.Parameter(torch.empty(out_channels).uniform_(-bound, bound))
        self.bias_sigma = nn.Parameter(torch.full((out_channels,), sigma))
        # The factors are kept, not their product: forward makes a new product, so that noise may be drawn anew between
        # a forward and its backward pass
        self.register_buffer('noise_in', torch.zeros(in_channels))
        self.register_buffer('noise_out', torch.zeros(out_channels))
        self.reset_noise()

    @torch.no_grad()
    def reset_noise(self) -> None:
        """Draw the noise anew."""
        for noise in (self.noise_in, self.noise_out):
            drawn = torch.randn_like(noise)
            noise.copy_(drawn.sign() * drawn.abs().sqrt())

    def forward(self, x: Tensor) -> Tensor:
        """The layer with its present noise; without in evaluation mode."""
        if not self.training:
            return F.linear(x, self.weight_mu, self.bias_mu)
        weight = torch.addcmul(self.weight_mu, self.weight_sigma, torch.outer(self.noise_out, self.noise_in))
        return F.linear(x, weight, torch.addcmul(self.bias_mu, self.bias_sigma, self.noise_out.clone()))
