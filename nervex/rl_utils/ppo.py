"""Proximal policy optimization, and the auxiliary phase of phasic policy gradient."""

from collections import namedtuple

import torch

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.categorical import (
    check_logits,
    gaussian_log_prob,
    gaussian_log_prob_and_entropy,
    kl_divergence,
    log_prob,
    log_prob_and_entropy,
)
from nervex.rl_utils.checks import check_alike, check_shape, weighted_mean

ppo_data = namedtuple(
    'ppo_data', ['logit_new', 'logit_old', 'action', 'value_new', 'value_old', 'adv', 'return_', 'weight']
)
ppo_policy_data = namedtuple('ppo_policy_data', ['logit_new', 'logit_old', 'action', 'adv', 'weight'])
ppo_value_data = namedtuple('ppo_value_data', ['value_new', 'value_old', 'return_', 'weight'])
ppo_loss = namedtuple('ppo_loss', ['policy_loss', 'value_loss', 'entropy_loss'])
ppo_policy_loss = namedtuple('ppo_policy_loss', ['policy_loss', 'entropy_loss'])
ppo_info = namedtuple('ppo_info', ['approx_kl', 'clipfrac'])
ppg_data = namedtuple('ppg_data', ['logit_new', 'logit_old', 'action', 'value_new', 'value_old', 'return_', 'weight'])
ppg_joint_loss = namedtuple('ppg_joint_loss', ['auxiliary_loss', 'behavioral_cloning_loss'])


@hpc_wrapper()
def ppo_error(
    data: ppo_data, clip_ratio: float = 0.2, use_value_clip: bool = True, dual_clip: float | None = None
) -> tuple[ppo_loss, ppo_info]:
    """
    Overview:
        The clipped surrogate of PPO for discrete actions, :math:`-mean(w \\min(\\rho A, clip(\\rho, 1 \\pm \\epsilon)
        A))`, with its value part :math:`\\frac{1}{2} mean(w \\max((R - V)^2, (R - V_{old} - clip(V - V_{old}, \\pm
        \\epsilon))^2))` and its entropy part (arXiv:1707.06347). The second, lower clip of negative advantages,
        :math:`\\max(\\cdot, c A)`, is from arXiv:1912.09729.
    Arguments:
        - data (:obj:`ppo_data`): fields as below; ``weight`` may be None. Logits may be lists, one tensor per head
        - clip_ratio (:obj:`float`): the ratio of probabilities is clipped to 1 - clip_ratio .. 1 + clip_ratio
        - use_value_clip (:obj:`bool`): clip the change of the value in the same way
        - dual_clip (:obj:`float | None`): above 1: bound of the loss ratio for negative advantages; None is off
    Returns:
        - loss (:obj:`ppo_loss`): policy_loss, value_loss (with its factor 0.5), entropy_loss (to be subtracted), 0-dim
        - info (:obj:`ppo_info`): approx_kl and clipfrac, weighted as the losses are, 0-dim, detached
    Shapes:
        - logit_new, logit_old (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - action (:obj:`torch.LongTensor`): :math:`(B, )`
        - value_new, value_old, adv, return_, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    policy_fields = (data.logit_new, data.logit_old, data.action, data.adv, data.weight)
    policy, info = ppo_policy_error(ppo_policy_data(*policy_fields), clip_ratio, dual_clip)
    return ppo_loss(policy.policy_loss, _value_loss(data, clip_ratio, use_value_clip), policy.entropy_loss), info


def _value_loss(data: ppo_data, clip_ratio: float, use_value_clip: bool) -> torch.Tensor:
    check_shape('ppo_error', value_new=(data.value_new, data.adv.shape))
    fields = (data.value_new, data.value_old, data.return_, data.weight)
    return ppo_value_error(ppo_value_data(*fields), clip_ratio, use_value_clip)


def ppo_error_continuous(
    data: ppo_data, clip_ratio: float = 0.2, use_value_clip: bool = True, dual_clip: float | None = None
) -> tuple[ppo_loss, ppo_info]:
    """
    Overview:
        :func:`ppo_error` for actions from a diagonal normal distribution, with :math:`\\rho = \\prod_i N(a_i; \\mu_i,
        \\sigma_i) / N(a_i; \\mu_{old,i}, \\sigma_{old,i})` (arXiv:1707.06347).
    Arguments:
        - data (:obj:`ppo_data`): ``logit_new`` and ``logit_old`` are pairs (mu, sigma), or mappings with these keys;
          the rest as in :func:`ppo_error`
    Returns:
        - loss (:obj:`ppo_loss`), info (:obj:`ppo_info`): as of :func:`ppo_error`
    Shapes:
        - mu, sigma, action (:obj:`torch.FloatTensor`): :math:`(B, D)`; everything else :math:`(B, )`
    """
    logp_new, entropy = gaussian_log_prob_and_entropy(data.logit_new, data.action)
    with torch.no_grad():
        logp_old = gaussian_log_prob(data.logit_old, data.action)
    old_and_weights = logp_old, data.adv, data.weight
    policy_loss, info = clipped_surrogate('ppo_error_continuous', logp_new, *old_and_weights, clip_ratio, dual_clip)
    value_loss = _value_loss(data, clip_ratio, use_value_clip)
    return ppo_loss(policy_loss, value_loss, weighted_mean(entropy, data.weight)), info


ppo_error_continous = ppo_error_continuous  # the documented spelling


def ppo_policy_error(
    data: ppo_policy_data, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    """
    Overview:
        The policy and entropy parts of :func:`ppo_error` alone, :math:`-mean(w \\min(\\rho A, clip(\\rho, 1 \\pm
        \\epsilon) A))` and :math:`mean(w H)` (arXiv:1707.06347).
    Arguments:
        - data (:obj:`ppo_policy_data`): logit_new, logit_old, action, adv, weight, as in :func:`ppo_error`
    Returns:
        - loss (:obj:`ppo_policy_loss`), info (:obj:`ppo_info`): as of :func:`ppo_error`
    Shapes:
        - logit_new, logit_old (:obj:`torch.FloatTensor`): :math:`(B, N)`; everything else :math:`(B, )`
    """
    logit_new, logit_old, action, adv, weight = data
    logp_new, entropy = log_prob_and_entropy(logit_new, action)
    check_logits('ppo_error', 'logit_old', logit_old, logit_new)
    with torch.no_grad():
        logp_old = log_prob(logit_old, action)
    loss, info = clipped_surrogate('ppo_error', logp_new, logp_old, adv, weight, clip_ratio, dual_clip)
    return ppo_policy_loss(loss, weighted_mean(entropy, weight)), info


def clipped_surrogate(
    where: str,
    logp_new: torch.Tensor,
    logp_old: torch.Tensor,
    adv: torch.Tensor,
    weight: torch.Tensor | None,
    clip_ratio: float,
    dual_clip: float | None,
) -> tuple[torch.Tensor, ppo_info]:
    """The policy part from log-probabilities of one shape, usually (B, ), whatever the distribution."""
    if dual_clip is not None and not dual_clip > 1.0:
        raise ValueError(f'{where}: dual_clip must be above 1, got {dual_clip}; None turns it off')
    shape = logp_new.shape
    check_alike(where, shape, logp_old=logp_old, adv=adv, weight=weight)
    adv = adv.detach()
    log_ratio = logp_new - logp_old
    ratio = log_ratio.exp()
    surrogate = torch.min(ratio * adv, ratio.clamp(1 - clip_ratio, 1 + clip_ratio) * adv)
    if dual_clip is not None:
        surrogate = torch.where(adv < 0, torch.max(surrogate, dual_clip * adv), surrogate)
    with torch.no_grad():
        # r - 1 - log r: never negative, and of far less variance than the mean of -log r
        shift = ratio - 1
        clipped = (shift.abs() > clip_ratio).to(ratio.dtype)
        info = ppo_info(weighted_mean(shift - log_ratio, weight), weighted_mean(clipped, weight))
    return -weighted_mean(surrogate, weight), info


def ppo_value_error(data: ppo_value_data, clip_ratio: float = 0.2, use_value_clip: bool = True) -> torch.Tensor:
    """
    Overview:
        The value part of :func:`ppo_error` alone: half the squared error, the larger one of the value and of the old
        value plus its clipped change,
        :math:`\\frac{1}{2} mean(w \\max((R - V)^2, (R - V_{old} - clip(V - V_{old}, \\pm \\epsilon))^2))`
        (arXiv:1707.06347).
    Arguments:
        - data (:obj:`ppo_value_data`): value_new, value_old, return_, weight, as in :func:`ppo_error`; ``value_old``
          may be None without ``use_value_clip``
    Returns:
        - value_loss (:obj:`torch.Tensor`): 0-dim
    Shapes:
        - value_new, value_old, return_, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    value_new, value_old, return_, weight = data
    shape = value_new.shape
    check_alike('ppo_error', shape, value_old=value_old, return_=return_, weight=weight)
    return_ = return_.detach()
    error = (return_ - value_new).pow(2)
    if use_value_clip:
        if value_old is None:
            raise ValueError('ppo_error: value_old is None; the value clip needs it: give it, or use_value_clip=False')
        value_old = value_old.detach()
        clipped = value_old + (value_new - value_old).clamp(-clip_ratio, clip_ratio)
        error = torch.max(error, (return_ - clipped).pow(2))
    return 0.5 * weighted_mean(error, weight)


def ppg_joint_error(data: ppg_data, clip_ratio: float = 0.2, use_value_clip: bool = True) -> ppg_joint_loss:
    """
    Overview:
        The joint loss of the auxiliary phase: the auxiliary value head learns the returns, while the full categorical
        KL divergence from the old policy keeps the policy:
        :math:`\\frac{1}{2} mean(w (R - V_{aux})^2)` (clipped as in PPO) and
        :math:`mean(w \\sum_a \\pi_{old}(a) (\\log \\pi_{old}(a) - \\log \\pi(a)))` (arXiv:2009.04416).
    Arguments:
        - data (:obj:`ppg_data`): fields as below; ``weight`` may be None, ``action`` is not used. Logits may be
          lists, one tensor per head
        - clip_ratio, use_value_clip: as in :func:`ppo_error`
    Returns:
        - loss (:obj:`ppg_joint_loss`): auxiliary_loss (with its factor 0.5), behavioral_cloning_loss KL(old || new),
          0-dim
    Shapes:
        - logit_new, logit_old (:obj:`torch.FloatTensor`): :math:`(B, N)`; everything else :math:`(B, )`
    """
    fields = ppo_value_data(data.value_new, data.value_old, data.return_, data.weight)
    auxiliary_loss = ppo_value_error(fields, clip_ratio, use_value_clip)
    cloning = kl_divergence(data.logit_old, data.logit_new)
    return ppg_joint_loss(auxiliary_loss, weighted_mean(cloning, data.weight))
