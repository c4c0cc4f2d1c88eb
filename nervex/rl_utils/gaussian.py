"""Log-probability and entropy of a diagonal normal distribution: no distribution object, few kernels."""

import math
from collections.abc import Mapping, Sequence

import torch

from nervex.rl_utils.checks import ShapeError, check_shape

MuSigma = Sequence[torch.Tensor] | Mapping[str, torch.Tensor]
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def mu_sigma(logit: MuSigma) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and standard deviation from a pair ``(mu, sigma)`` or a mapping with these keys."""
    mu, sigma = (logit['mu'], logit['sigma']) if isinstance(logit, Mapping) else logit
    if torch.broadcast_shapes(mu.shape, sigma.shape) != mu.shape:
        raise ShapeError(f'sigma has shape {tuple(sigma.shape)}, it must fit mu {tuple(mu.shape)}')
    return mu, sigma


def gaussian_log_prob(logit: MuSigma, action: torch.Tensor) -> torch.Tensor:
    """
    Overview:
        Log-density of the actions, :math:`\\sum_i -\\frac{1}{2} ((a_i - \\mu_i) / \\sigma_i)^2 - \\log \\sigma_i -
        \\frac{1}{2} \\log 2 \\pi`. Sutton and Barto, Reinforcement Learning: An Introduction, section 13.7.
    Arguments:
        - logit (:obj:`Sequence | Mapping`): mu and sigma (a standard deviation, positive)
    Shapes:
        - mu, sigma, action (:obj:`torch.FloatTensor`): :math:`(B, D)`; the result has shape :math:`(B, )`
    """
    mu, sigma = mu_sigma(logit)
    check_shape('gaussian_log_prob', action=(action, mu.shape))
    density = -0.5 * ((action - mu) / sigma).pow(2) - sigma.log() - _HALF_LOG_2PI
    return density.sum(-1) if density.dim() > 1 else density


def gaussian_entropy(logit: MuSigma) -> torch.Tensor:
    """
    Overview:
        Entropy, :math:`\\sum_i \\log \\sigma_i + \\frac{1}{2} \\log 2 \\pi e`. Cover and Thomas, Elements of
        Information Theory, section 8.4.
    Shapes:
        - mu, sigma (:obj:`torch.FloatTensor`): :math:`(B, D)`; the result has shape :math:`(B, )`
    """
    mu, sigma = mu_sigma(logit)
    entropy = (sigma.log() + (0.5 + _HALF_LOG_2PI)).expand(mu.shape)
    return entropy.sum(-1) if entropy.dim() > 1 else entropy


def gaussian_log_prob_and_entropy(logit: MuSigma, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Overview:
        :func:`gaussian_log_prob` and :func:`gaussian_entropy`; the continuous counterpart of
        :func:`nervex.rl_utils.log_prob_and_entropy`.
    Shapes:
        - mu, sigma, action (:obj:`torch.FloatTensor`): :math:`(B, D)`; both results :math:`(B, )`
    """
    return gaussian_log_prob(logit, action), gaussian_entropy(logit)


def gaussian_kl_divergence(logit_old: MuSigma, logit_new: MuSigma) -> torch.Tensor:
    """
    Overview:
        :math:`KL(old || new) = \\sum_i \\log \\frac{\\sigma_{new,i}}{\\sigma_{old,i}} + \\frac{\\sigma_{old,i}^2 +
        (\\mu_{old,i} - \\mu_{new,i})^2}{2 \\sigma_{new,i}^2} - \\frac{1}{2}`. The old policy gets no gradient.
        Trust region policy optimization (arXiv:1502.05477).
    Shapes:
        - mu, sigma (:obj:`torch.FloatTensor`): :math:`(B, D)`; the result has shape :math:`(B, )`
    """
    (mu_old, sigma_old), (mu, sigma) = (tuple(x.detach() for x in mu_sigma(logit_old)), mu_sigma(logit_new))
    check_shape('gaussian_kl_divergence', logit_new=(mu, mu_old.shape))
    ratio = sigma_old / sigma
    divergence = -ratio.log() + 0.5 * (ratio.pow(2) + ((mu_old - mu) / sigma).pow(2) - 1)
    return divergence.sum(-1) if divergence.dim() > 1 else divergence
