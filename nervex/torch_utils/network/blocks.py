"""A layer with its normalization and activation as one module, residual blocks, larger maps."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from nervex.torch_utils.network.activation import build_activation
from nervex.utils.errors import unknown_name

_NORMS: dict[str, dict[int | None, type[nn.Module]]] = {
    'BN': {1: nn.BatchNorm1d, 2: nn.BatchNorm2d},
    'IN': {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d},
    'LN': {None: nn.LayerNorm, 1: nn.LayerNorm},
}
ActivationName = str | nn.Module | None


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
        """The layer of the gated input."""
        return self.out(torch.sigmoid(self.gate(context)) * x)


def build_normalization(norm_type: str, dim: int | None = None) -> type[nn.Module]:
    """The class of a normalization: 'BN' or 'IN' over 1 or 2 dimensions, 'LN' over the last."""
    if norm_type not in _NORMS:
        raise ValueError(unknown_name('norm_type', norm_type, _NORMS))
    if dim not in _NORMS[norm_type]:
        raise ValueError(f"'{norm_type}' exists for dim {', '.join(map(str, _NORMS[norm_type]))}, got {dim}")
    return _NORMS[norm_type][dim]


def _block(layer: Any, dim: int, activation: ActivationName, norm_type: str | None) -> nn.Sequential:
    """A layer, then its normalization and activation where asked for."""
    block = nn.Sequential(layer)
    if norm_type is not None:
        block.append(build_normalization(norm_type, dim)(getattr(layer, 'out_channels', None) or layer.out_features))
    return block if activation is None else block.append(build_activation(activation))


def fc_block(
    in_channels: int,
    out_channels: int,
    activation: ActivationName = None,
    norm_type: str | None = None,
    use_dropout: bool = False,
    dropout_probability: float = 0.5,
) -> nn.Sequential:
    """Linear layer, then normalization, activation and dropout where asked for."""
    block = _block(nn.Linear(in_channels, out_channels), 1, activation, norm_type)
    return block.append(nn.Dropout(dropout_probability)) if use_dropout else block


def _convolution(layer: Any, dim: int, what: str) -> Callable[..., nn.Sequential]:
    def block(
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *more: Any,
        activation: ActivationName = None,
        norm_type: str | None = None,
        **named: Any,
    ) -> nn.Sequential:
        return _block(layer(in_channels, out_channels, kernel_size, *more, **named), dim, activation, norm_type)

    block.__doc__ = f"{what}, then normalization ('BN' or 'IN') and activation; the rest as ``nn.{layer.__name__}``."
    return block


conv1d_block = _convolution(nn.Conv1d, 1, 'Convolution over one dimension')
conv2d_block = _convolution(nn.Conv2d, 2, 'Convolution over two dimensions')
deconv2d_block = _convolution(nn.ConvTranspose2d, 2, 'Transposed convolution')


class _Residual(nn.Module):
    """Layers around which the input goes unchanged."""

    def __init__(self, layers: list[nn.Module], dim: int, activation: ActivationName, norm_type: str | None) -> None:
        super().__init__()
        between = [*[activation] * (len(layers) - 1), None]
        self.body = nn.Sequential(*[_block(layer, dim, act, norm_type) for layer, act in zip(layers, between)])
        self.activation = build_activation(activation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The input plus what the layers make of it, activated."""
        return self.activation(x + self.body(x))


class ResBlock(_Residual):
    """
    Overview:
        Two 3x3 convolutions ('basic'), or a 1x1, a 3x3 and a 1x1 ('bottleneck'), around which the input goes unchanged.
    Shapes:
        - x, y (:obj:`torch.FloatTensor`): :math:`(B, in_channels, H, W)`
    """

    def __init__(
        self,
        in_channels: int,
        activation: ActivationName = 'relu',
        norm_type: str | None = 'BN',
        res_type: str = 'basic',
    ) -> None:
        kernels = {'basic': (3, 3), 'bottleneck': (1, 3, 1)}
        if res_type not in kernels:
            raise ValueError(unknown_name('res_type', res_type, kernels))
        layers: list[nn.Module] = [nn.Conv2d(in_channels, in_channels, k, 1, k // 2) for k in kernels[res_type]]
        super().__init__(layers, 2, activation, norm_type)


class ResFCBlock(_Residual):
    """
    Overview:
        Two linear layers around which the input goes unchanged.
    Shapes:
        - x, y (:obj:`torch.FloatTensor`): :math:`(B, in_channels)`
    """

    def __init__(self, in_channels: int, activation: ActivationName = 'relu', norm_type: str | None = 'BN') -> None:
        super().__init__([nn.Linear(in_channels, in_channels) for _ in range(2)], 1, activation, norm_type)


class NearestUpsample(nn.Upsample):
    """
    Overview:
        Repeats the pixels of a feature map.
    Arguments:
        - scale_factor (:obj:`float | tuple[float, float]`): how much larger
    Shapes:
        - input :math:`(B, C, H, W)`, output :math:`(B, C, scale H, scale W)`
    """

    def __init__(self, scale_factor: float | tuple[float, float]) -> None:
        super().__init__(scale_factor=scale_factor, mode='nearest')


class BilinearUpsample(nn.Upsample):
    """
    Overview:
        Interpolates between the pixels of a feature map; arguments and shapes as in ``NearestUpsample``.
    """

    def __init__(self, scale_factor: float | tuple[float, float]) -> None:
        super().__init__(scale_factor=scale_factor, mode='bilinear', align_corners=False)
