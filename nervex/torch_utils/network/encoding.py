"""Numbers as vectors, lengths as masks, maps as coordinates."""

import torch
import torch.nn.functional as F
from torch import nn


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
        assert x.dim() == 4 and x.shape[1] == 1, x.shape
        _, _, height, width = x.shape
        p = F.softmax(x.flatten(1), dim=1).view(-1, height, width)
        rows = torch.arange(height, dtype=x.dtype, device=x.device)
        columns = torch.arange(width, dtype=x.dtype, device=x.device)
        return torch.stack([(p.sum(2) * rows).sum(1), (p.sum(1) * columns).sum(1)], 1)
