"""Larger feature maps."""

import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


class NearestUpsample(nn.Module):
    """
    Overview:
        Repeats the pixels of a feature map.
    Arguments:
        - scale_factor (:obj:`float | tuple[float, float]`): how much larger
    Shapes:
        - input :math:`(B, C, H, W)`, output :math:`(B, C, scale H, scale W)`
    """

    _mode = {'mode': 'nearest'}

    def __init__(self, scale_factor: float | tuple[float, float]) -> None:
        super().__init__()
        self.scale_factor = scale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=self.scale_factor, **self._mode)  # type: ignore[arg-type]


class BilinearUpsample(NearestUpsample):
    """
    Overview:
        Interpolates between the pixels of a feature map; arguments and shapes as in ``NearestUpsample``.
    """

    _mode = {'mode': 'bilinear', 'align_corners': False}  # type: ignore[dict-item]
