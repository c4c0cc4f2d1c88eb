"""Numbers as vectors, lengths as masks, maps as coordinates, entities with positions as maps."""

import torch
import torch.nn.functional as F
from torch import nn

from nervex.utils.errors import unknown_name


def one_hot(val: torch.Tensor, num: int, num_first: bool = False) -> torch.Tensor:
    """
    Overview:
        A float vector with a one at the place of each value. Values outside [0, num) raise ValueError.
    Shapes:
        - val (:obj:`torch.LongTensor`): :math:`(*)`
        - encoded (:obj:`torch.FloatTensor`): :math:`(*, num)`, or :math:`(num, *)` with ``num_first``
    """
    if val.numel() and (int(val.min()) < 0 or int(val.max()) >= num):
        raise ValueError(f'values must be in [0, {num}), got {int(val.min())} to {int(val.max())}')
    encoded = F.one_hot(val.long(), num).float()
    return encoded.movedim(-1, 0) if num_first else encoded


def binary_encode(y: torch.Tensor, max_val: torch.Tensor | int) -> torch.Tensor:
    """
    Overview:
        Values as bits, the highest first, with as many bits as the largest possible value has.
    Arguments:
        - max_val (:obj:`torch.Tensor | int`): larger values are cut to it
    Shapes:
        - y (:obj:`torch.LongTensor`): :math:`(B, )`
        - bits (:obj:`torch.FloatTensor`): :math:`(B, L)`
    """
    largest = int(max_val)
    if largest < 1:
        raise ValueError(f'max_val must be at least 1, got {largest}')
    places = torch.arange(largest.bit_length() - 1, -1, -1, device=y.device)
    return ((y.clamp(0, largest).long().unsqueeze(-1) >> places) & 1).float()


def sequence_mask(lengths: torch.Tensor, max_len: int | None = None) -> torch.Tensor:
    """
    Overview:
        True where a position lies within the length of its sequence.
    Shapes:
        - lengths (:obj:`torch.LongTensor`): :math:`(B, )` or :math:`(B, 1)`
        - mask (:obj:`torch.BoolTensor`): :math:`(B, max_len)`; the longest length if ``max_len`` is None
    """
    lengths = lengths.reshape(-1, 1)
    longest = int(lengths.max()) if max_len is None else max_len
    return torch.arange(longest, device=lengths.device) < lengths


class SoftArgmax(nn.Module):
    """
    Overview:
        The expected place of the peak of a map, differentiable.
    Shapes:
        - x (:obj:`torch.FloatTensor`): :math:`(B, 1, H, W)`
        - location (:obj:`torch.FloatTensor`): :math:`(B, 2)`, row and column
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The location."""
        assert x.dim() == 4 and x.shape[1] == 1, x.shape
        _, _, height, width = x.shape
        p = F.softmax(x.flatten(1), dim=1).view(-1, height, width)
        rows = torch.arange(height, dtype=x.dtype, device=x.device)
        columns = torch.arange(width, dtype=x.dtype, device=x.device)
        return torch.stack([(p.sum(2) * rows).sum(1), (p.sum(1) * columns).sum(1)], 1)


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
        """The map."""
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
