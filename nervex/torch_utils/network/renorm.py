"""Batch renormalisation: features scaled by a batch while training, as by all batches so far."""

import torch
import torch.nn as nn
from torch import Tensor


class BatchRenorm(nn.Module):
    """
    Overview:
        Scales each feature to mean 0 and deviation 1: by running statistics in eval mode; in training by the batch's
        own, corrected towards the running ones by factors without a gradient that are bounded (Ioffe 2017,
        https://arxiv.org/abs/1702.03275). The first ``warmup`` batches are not corrected: plain batch normalisation.
    Arguments:
        - features (:obj:`int`): size of the last axis
        - momentum (:obj:`float`): share of a batch in the running statistics
        - warmup (:obj:`int`): batches without a correction
        - r_max, d_max (:obj:`float`): bounds of the correction of scale and shift
    Shapes:
        - input and output :math:`(*, features)`
    """

    running_mean: Tensor
    running_var: Tensor
    batches: Tensor

    def __init__(
        self,
        features: int,
        momentum: float = 0.01,
        warmup: int = 100_000,
        r_max: float = 3.0,
        d_max: float = 5.0,
        eps: float = 1e-3,
    ) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))
        self.register_buffer('running_mean', torch.zeros(features))
        self.register_buffer('running_var', torch.ones(features))
        self.register_buffer('batches', torch.zeros(()))
        self._momentum, self._warmup, self._r_max, self._d_max, self._eps = momentum, warmup, r_max, d_max, eps

    def forward(self, x: Tensor) -> Tensor:
        """The outputs that the class describes."""
        running_std = (self.running_var + self._eps).sqrt()
        if not self.training:
            return (x - self.running_mean) / running_std * self.weight + self.bias
        rows = x.reshape(-1, x.shape[-1])
        mean, var = rows.mean(0), rows.var(0, correction=0)
        std = (var + self._eps).sqrt()
        with torch.no_grad():
            is_warm = self.batches >= self._warmup
            r = (std / running_std).clamp(1 / self._r_max, self._r_max)
            d = ((mean - self.running_mean) / running_std).clamp(-self._d_max, self._d_max)
            r, d = torch.where(is_warm, r, torch.ones_like(r)), torch.where(is_warm, d, torch.zeros_like(d))
            self.running_mean.lerp_(mean, self._momentum)
            self.running_var.lerp_(var, self._momentum)
            self.batches.add_(1)
        return ((x - mean) / std * r + d) * self.weight + self.bias


def renormed_linear(in_dim: int, out_dim: int) -> nn.Module:
    """A linear layer whose inputs are renormalised, for the argument ``linear`` of ``MLP``."""
    return nn.Sequential(BatchRenorm(in_dim), nn.Linear(in_dim, out_dim))
