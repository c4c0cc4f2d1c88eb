"""Advantage actor-critic."""

from collections import namedtuple

import torch
import torch.nn.functional as F

from nervex.rl_utils.categorical import gaussian_log_prob_and_entropy, log_prob_and_entropy
from nervex.rl_utils.checks import check_alike, weighted_mean

a2c_data = namedtuple('a2c_data', ['logit', 'action', 'value', 'adv', 'return_', 'weight'])
a2c_loss = namedtuple('a2c_loss', ['policy_loss', 'value_loss', 'entropy_loss'])


def a2c_error(data: a2c_data) -> a2c_loss:
    """
    Overview:
        The three losses of advantage actor-critic for discrete actions, :math:`-mean(w A \\log \\pi(a))`,
        :math:`mean(w (R - V)^2)` and :math:`mean(w H)` (arXiv:1602.01783).
    Arguments:
        - data (:obj:`a2c_data`): fields as below; ``weight`` may be None. Logits may be a list, one tensor per head
    Returns:
        - loss (:obj:`a2c_loss`): policy_loss -mean(w log pi(a) adv), value_loss mean(w (return_ - value)^2),
          entropy_loss mean(w H), to be subtracted; 0-dim
    Shapes:
        - logit (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - action (:obj:`torch.LongTensor`): :math:`(B, )`
        - value, adv, return_, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    return _losses(*log_prob_and_entropy(data.logit, data.action), data)


def a2c_error_continuous(data: a2c_data) -> a2c_loss:
    """
    Overview:
        :func:`a2c_error` for actions from a diagonal normal distribution, :math:`\\pi(a) = \\prod_i N(a_i; \\mu_i,
        \\sigma_i)` (arXiv:1602.01783).
    Arguments:
        - data (:obj:`a2c_data`): ``logit`` is the pair (mu, sigma), or a mapping with these keys
    Returns:
        - loss (:obj:`a2c_loss`): policy_loss, value_loss, entropy_loss, 0-dim
    Shapes:
        - mu, sigma, action (:obj:`torch.FloatTensor`): :math:`(B, D)`
        - value, adv, return_, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    return _losses(*gaussian_log_prob_and_entropy(data.logit, data.action), data)


def _losses(logp: torch.Tensor, entropy: torch.Tensor, data: a2c_data) -> a2c_loss:
    shape, weight = logp.shape, data.weight
    check_alike('a2c_error', shape, value=data.value, adv=data.adv, return_=data.return_, weight=weight)
    policy_loss = -weighted_mean(logp * data.adv.detach(), weight)
    value_loss = weighted_mean(F.mse_loss(data.value, data.return_.detach(), reduction='none'), weight)
    return a2c_loss(policy_loss, value_loss, weighted_mean(entropy, weight))
