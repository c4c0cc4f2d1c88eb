"""Attention between a set of entities."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from nervex.torch_utils.network.blocks import fc_block


class Attention(nn.Module):
    """
    Overview:
        Multi-head attention of all entities to the unmasked ones.
    Shapes:
        - x (:obj:`torch.FloatTensor`): :math:`(B, N, input_dim)`
        - mask (:obj:`torch.BoolTensor`): :math:`(B, N)`, True for entities that exist; None: all
        - y (:obj:`torch.FloatTensor`): :math:`(B, N, output_dim)`
    """

    def __init__(self, input_dim: int, head_dim: int, output_dim: int, head_num: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.head_num, self.head_dim = head_num, head_dim
        self.qkv = nn.Linear(input_dim, 3 * head_num * head_dim)
        self.out = nn.Linear(head_num * head_dim, output_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """What the unmasked entities say to each of them."""
        batch, entities, _ = x.shape
        heads = self.qkv(x).view(batch, entities, 3, self.head_num, self.head_dim).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        score = query @ key.transpose(-1, -2) / math.sqrt(self.head_dim)
        if mask is not None:
            assert mask.shape == (batch, entities), (mask.shape, x.shape)
            score = score.masked_fill(~mask.bool()[:, None, None, :], -1e9)
        attended = self.dropout(F.softmax(score, dim=-1)) @ value
        return self.out(attended.transpose(1, 2).reshape(batch, entities, -1))


class TransformerLayer(nn.Module):
    """Attention and a small network, each with a residual path and layer normalization after it."""

    def __init__(
        self,
        input_dim: int,
        head_dim: int,
        hidden_dim: int,
        output_dim: int,
        head_num: int,
        mlp_num: int,
        dropout: float,
        activation: str | nn.Module,
    ) -> None:
        super().__init__()
        self.attention = Attention(input_dim, head_dim, output_dim, head_num, dropout)
        self.norm1, self.norm2 = nn.LayerNorm(output_dim), nn.LayerNorm(output_dim)
        self.dropout = nn.Dropout(dropout)
        widths = [output_dim] + [hidden_dim] * (mlp_num - 1)
        layers = [fc_block(a, b, activation=activation) for a, b in zip(widths, [*widths[1:], output_dim])]
        self.mlp = nn.Sequential(*layers, nn.Dropout(dropout))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """One round of attention."""
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.mlp(x))


class Transformer(nn.Module):
    """
    Overview:
        Encodes a set of entities by layers of attention (https://arxiv.org/abs/1706.03762). The order of the entities
        does not matter, and those that the mask leaves out change nothing for the others.
    Shapes:
        - x (:obj:`torch.FloatTensor`): :math:`(B, N, input_dim)`
        - mask (:obj:`torch.BoolTensor | None`): :math:`(B, N)`
        - y (:obj:`torch.FloatTensor`): :math:`(B, N, output_dim)`
    """

    def __init__(
        self,
        input_dim: int,
        head_dim: int = 128,
        hidden_dim: int = 1024,
        output_dim: int = 256,
        head_num: int = 2,
        mlp_num: int = 2,
        layer_num: int = 3,
        dropout_ratio: float = 0.0,
        activation: str | nn.Module = 'relu',
    ) -> None:
        super().__init__()
        self.embedding = fc_block(input_dim, output_dim, activation=activation)
        self.layers = nn.ModuleList(
            TransformerLayer(output_dim, head_dim, hidden_dim, output_dim, head_num, mlp_num, dropout_ratio, activation)
            for _ in range(layer_num)
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """What the unmasked entities say to each of them."""
        assert x.dim() == 3, x.shape
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x
