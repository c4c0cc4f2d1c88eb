"""Entities with positions as a map."""

import torch
from torch import nn

from nervex.utils.errors import unknown_name


class ScatterConnection(nn.Module):
    """
    Overview:
        Writes the vector of each entity into a map at its position. Several entities at one place: the last one is seen
        ('cover') or their sum ('add').
    Shapes:
        - x (:obj:`torch.FloatTensor`): :math:`(B, M, N)`, M entities with N features
        - spatial_size: (H, W); location (:obj:`torch.LongTensor`): :math:`(B, M, 2)`, row and column
        - map (:obj:`torch.FloatTensor`): :math:`(B, N, H, W)`
    """

    def __init__(self, scatter_type: str = 'cover') -> None:
        super().__init__()
        if scatter_type not in ('cover', 'add'):
            raise ValueError(unknown_name('scatter_type', scatter_type, ('cover', 'add')))
        self.scatter_type = scatter_type

    def forward(self, x: torch.Tensor, spatial_size: tuple[int, int], location: torch.Tensor) -> torch.Tensor:
        batch, entities, features = x.shape
        height, width = spatial_size
        assert location.shape == (batch, entities, 2), (location.shape, x.shape)
        row, column = location.long().unbind(-1)
        if entities and not bool(((row >= 0) & (row < height) & (column >= 0) & (column < width)).all()):
            raise ValueError(f'a location lies outside of the map of {height} x {width}')
        place = row * width + column
        if self.scatter_type == 'cover':
            x = x * self._is_last(place).unsqueeze(-1)
        flat = x.new_zeros(batch, features, height * width)
        flat = flat.scatter_add(2, place.unsqueeze(1).expand(-1, features, -1), x.transpose(1, 2))
        return flat.view(batch, features, height, width)

    @staticmethod
    def _is_last(place: torch.Tensor) -> torch.Tensor:
        """Whether no later entity has the same place."""
        same = place.unsqueeze(1) == place.unsqueeze(2)
        return ~(same & torch.ones_like(same).triu(1)).any(2)
