"""Log-probability and entropy of actions straight from logits or (mu, sigma): no distribution object, few kernels."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from nervex.rl_utils.checks import ShapeError, check_shape, chosen

Logits = torch.Tensor | Sequence[torch.Tensor]
Actions = torch.Tensor | Sequence[torch.Tensor]


def log_prob(logit: Logits, action: Actions) -> torch.Tensor:
    """
    Overview:
        Log-probability of the actions under ``softmax(logit)``, :math:`z_a - \\log \\sum_b e^{z_b}`. With several
        heads the joint log-probability, their sum. Sutton and Barto, Reinforcement Learning: An Introduction, section
        13.1.
    Arguments:
        - logit (:obj:`torch.Tensor | Sequence[torch.Tensor]`): one head, or a list with one tensor per head
        - action (:obj:`torch.Tensor | Sequence[torch.Tensor]`): the same; for several heads also one tensor, heads last
    Shapes:
        - logit (:obj:`torch.FloatTensor`): :math:`(*, N)`
        - action (:obj:`torch.LongTensor`), result: :math:`(*)`
    """
    if not isinstance(logit, torch.Tensor):
        return _sum([log_prob(head, taken) for head, taken in _heads(logit, action)])
    return _taken('log_prob', torch.log_softmax(logit, dim=-1), action)


def entropy(logit: Logits) -> torch.Tensor:
    """
    Overview:
        Entropy of ``softmax(logit)``, :math:`-\\sum_a p_a \\log p_a`; with several heads the sum. Logits of minus
        infinity (masked actions) add nothing. As a bonus for exploration: Williams and Peng, 1991
        (doi:10.1080/09540099108946587).
    Shapes:
        - logit (:obj:`torch.FloatTensor`): :math:`(*, N)`; the result has shape :math:`(*)`
    """
    if not isinstance(logit, torch.Tensor):
        return _sum([entropy(head) for head in logit])
    return _entropy(torch.log_softmax(logit, dim=-1))


def log_prob_and_entropy(logit: Logits, action: Actions) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Overview:
        :func:`log_prob` and :func:`entropy` from one softmax.
    Shapes:
        - logit (:obj:`torch.FloatTensor`): :math:`(*, N)`
        - action (:obj:`torch.LongTensor`) and both results: :math:`(*)`
    """
    if not isinstance(logit, torch.Tensor):
        pairs = [log_prob_and_entropy(head, taken) for head, taken in _heads(logit, action)]
        return _sum([p[0] for p in pairs]), _sum([p[1] for p in pairs])
    log_p = torch.log_softmax(logit, dim=-1)
    return _taken('log_prob_and_entropy', log_p, action), _entropy(log_p)


def kl_divergence(logit_old: Logits, logit_new: Logits) -> torch.Tensor:
    """
    Overview:
        :math:`KL(old || new) = \\sum_a p_{old}(a) (\\log p_{old}(a) - \\log p_{new}(a))` over all actions; with
        several heads the sum. The old policy gets no gradient. Trust region policy optimization (arXiv:1502.05477).
    Shapes:
        - logit_old, logit_new (:obj:`torch.FloatTensor`): :math:`(*, N)`; the result has shape :math:`(*)`
    """
    if not isinstance(logit_old, torch.Tensor):
        return _sum([kl_divergence(old, new) for old, new in zip(logit_old, logit_new, strict=True)])
    if not isinstance(logit_new, torch.Tensor):
        raise TypeError('kl_divergence: the old logits are one tensor, the new ones a list; give both in one form')
    check_shape('kl_divergence', logit_new=(logit_new, logit_old.shape))
    log_old = torch.log_softmax(logit_old.detach(), dim=-1)
    ratio = log_old - torch.log_softmax(logit_new, dim=-1)
    return (log_old.exp() * ratio.masked_fill(log_old.isneginf(), 0.0)).sum(-1)


def check_logits(where: str, name: str, logit: Logits, other: Logits) -> None:
    """Logits of two policies must have the same shapes, head by head; ``name`` is what the first are called."""
    pairs: Any = [(logit, other)] if isinstance(other, torch.Tensor) else zip(logit, other)
    for head, expected in pairs:
        check_shape(where, **{name: (head, expected.shape)})


def _entropy(log_p: torch.Tensor) -> torch.Tensor:
    # The clamp makes the product 0 * -inf of a masked action 0, in the gradient too.
    return -(log_p.exp() * log_p.clamp_min(torch.finfo(log_p.dtype).min)).sum(-1)


def _sum(heads: list[torch.Tensor]) -> torch.Tensor:
    return functools.reduce(torch.add, heads)


def _taken(where: str, log_p: torch.Tensor, action: Actions) -> torch.Tensor:
    if not isinstance(action, torch.Tensor):
        raise TypeError(f'{where}: {len(action)} actions for one head of logits; give one tensor, or a list of logits')
    check_shape(where, action=(action, log_p.shape[:-1]))
    return chosen(where, log_p, action)


def _heads(logit: Sequence[torch.Tensor], action: Actions) -> list[tuple[torch.Tensor, torch.Tensor]]:
    if not isinstance(logit, (list, tuple)) or not all(isinstance(head, torch.Tensor) for head in logit):
        raise TypeError(f'logits are a tensor (*, N), or a list of them, one per head; got a {type(logit).__name__}')
    taken = action.unbind(-1) if isinstance(action, torch.Tensor) else action
    if len(logit) != len(taken):
        raise ValueError(f'got {len(logit)} heads of logits but actions for {len(taken)}; give one action per head')
    return list(zip(logit, taken))


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
