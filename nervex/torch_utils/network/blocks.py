"""A layer with its normalization and activation, as one module."""

from collections.abc import Callable

import torch
from torch import nn

from nervex.utils.errors import unknown_name

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    'relu': nn.ReLU,
    'prelu': nn.PReLU,
    'elu': nn.ELU,
    'gelu': nn.GELU,
    'silu': nn.SiLU,
    'swish': nn.SiLU,
    'tanh': nn.Tanh,
    'sigmoid': nn.Sigmoid,
    'leaky_relu': nn.LeakyReLU,
}
_NORMS: dict[str, dict[int | None, type[nn.Module]]] = {
    'BN': {1: nn.BatchNorm1d, 2: nn.BatchNorm2d},
    'IN': {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d},
    'LN': {None: nn.LayerNorm, 1: nn.LayerNorm},
}


class GLU(nn.Module):
    """
    Overview:
        Gated linear unit: a linear layer of ``x`` whose input is first multiplied by a gate computed from a context
        (https://arxiv.org/abs/1612.08083). ``input_type`` is 'fc' or 'conv2d' (1x1 convolutions).
    Shapes:
        - x: :math:`(B, input_dim)` and context: :math:`(B, context_dim)`, or :math:`(B, C, H, W)` both
    """

    def __init__(self, input_dim: int, output_dim: int, context_dim: int, input_type: str = 'fc') -> None:
        super().__init__()
        if input_type not in ('fc', 'conv2d'):
            raise ValueError(unknown_name('input_type', input_type, ('fc', 'conv2d')))
        layer = nn.Linear if input_type == 'fc' else lambda a, b: nn.Conv2d(a, b, 1)
        self.gate, self.out = layer(context_dim, input_dim), layer(input_dim, output_dim)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        return self.out(torch.sigmoid(self.gate(context)) * x)


def build_activation(activation: str | nn.Module | None) -> nn.Module:
    """A module by the activation's name; None is the identity, and a module is taken as it is."""
    if activation is None or isinstance(activation, nn.Module):
        return nn.Identity() if activation is None else activation
    if activation not in _ACTIVATIONS:
        raise ValueError(unknown_name('activation', activation, _ACTIVATIONS))
    return _ACTIVATIONS[activation]()


def build_normalization(norm_type: str, dim: int | None = None) -> type[nn.Module]:
    """The class of a normalization: 'BN' or 'IN' over 1 or 2 dimensions, 'LN' over the last."""
    if norm_type not in _NORMS:
        raise ValueError(unknown_name('norm_type', norm_type, _NORMS))
    if dim not in _NORMS[norm_type]:
        raise ValueError(f"'{norm_type}' exists for dim {', '.join(map(str, _NORMS[norm_type]))}, got {dim}")
    return _NORMS[norm_type][dim]


def fc_block(
    in_channels: int,
    out_channels: int,
    activation: str | nn.Module | None = None,
    norm_type: str | None = None,
    use_dropout: bool = False,
    dropout_probability: float = 0.5,
) -> nn.Sequential:
    """Linear layer, then normalization, activation and dropout where asked for."""
    layers: list[nn.Module] = [nn.Linear(in_channels, out_channels), *_after(out_channels, 1, norm_type, activation)]
    return nn.Sequential(*layers, *([nn.Dropout(dropout_probability)] if use_dropout else []))


def conv1d_block(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    activation: str | nn.Module | None = None,
    norm_type: str | None = None,
) -> nn.Sequential:
    """Convolution over one dimension, then normalization ('BN' or 'IN') and activation where asked for."""
    layer = nn.Conv1d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
    return nn.Sequential(layer, *_after(out_channels, 1, norm_type, activation))


def conv2d_block(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    activation: str | nn.Module | None = None,
    norm_type: str | None = None,
    bias: bool = True,
) -> nn.Sequential:
    """Convolution over two dimensions, then normalization ('BN' or 'IN') and activation where asked for."""
    layer = nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
    return nn.Sequential(layer, *_after(out_channels, 2, norm_type, activation))


def deconv2d_block(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    groups: int = 1,
    activation: str | nn.Module | None = None,
    norm_type: str | None = None,
) -> nn.Sequential:
    """Transposed convolution over two dimensions, then normalization and activation where asked for."""
    layer = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups)
    return nn.Sequential(layer, *_after(out_channels, 2, norm_type, activation))


def _after(channels: int, dim: int, norm_type: str | None, activation: str | nn.Module | None) -> list[nn.Module]:
    found: list[nn.Module] = []
    if norm_type is not None:
        found.append(build_normalization(norm_type, dim)(channels))
    if activation is not None:
        found.append(build_activation(activation))
    return found
