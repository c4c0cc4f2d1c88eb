"""Linear layers that explore by noise on their weights."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


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
