"""Residual blocks: the input plus what two layers make of it."""

import torch
from torch import nn

from nervex.torch_utils.network.blocks import build_activation, conv2d_block, fc_block
from nervex.utils.errors import unknown_name


class ResBlock(nn.Module):
    """
    Overview:
        Two 3x3 convolutions ('basic'), or a 1x1, a 3x3 and a 1x1 ('bottleneck'), around which the input goes unchanged.
    Shapes:
        - x, y (:obj:`torch.FloatTensor`): :math:`(B, in_channels, H, W)`
    """

    def __init__(
        self,
        in_channels: int,
        activation: str | nn.Module | None = 'relu',
        norm_type: str | None = 'BN',
        res_type: str = 'basic',
    ) -> None:
        super().__init__()
        kernels = {'basic': (3, 3), 'bottleneck': (1, 3, 1)}
        if res_type not in kernels:
            raise ValueError(unknown_name('res_type', res_type, kernels))
        sizes = kernels[res_type]
        self.body = nn.Sequential(
            *[
                conv2d_block(
                    in_channels,
                    in_channels,
                    size,
                    padding=size // 2,
                    norm_type=norm_type,
                    activation=activation if i < len(sizes) - 1 else None,
                )
                for i, size in enumerate(sizes)
            ]
        )
        self.activation = build_activation(activation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(x + self.body(x))


class ResFCBlock(nn.Module):
    """
    Overview:
        Two linear layers around which the input goes unchanged.
    Shapes:
        - x, y (:obj:`torch.FloatTensor`): :math:`(B, in_channels)`
    """

    def __init__(
        self, in_channels: int, activation: str | nn.Module | None = 'relu', norm_type: str | None = 'BN'
    ) -> None:
        super().__init__()
        self.body = nn.Sequential(
            fc_block(in_channels, in_channels, activation=activation, norm_type=norm_type),
            fc_block(in_channels, in_channels, norm_type=norm_type),
        )
        self.activation = build_activation(activation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(x + self.body(x))
