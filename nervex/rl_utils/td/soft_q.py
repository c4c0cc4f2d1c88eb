"""Soft (maximum-entropy) action values with discrete actions."""

from collections import namedtuple

import torch

from nervex.rl_utils.checks import check_rank, check_shape, chosen
from nervex.rl_utils.td.loss import Criterion, TDLoss, reduce_td, squared_error
from nervex.rl_utils.td.nstep import nstep_target

q_v_1step_td_data = namedtuple('q_v_1step_td_data', ['q', 'v', 'act', 'reward', 'done', 'weight'])
soft_q_nstep_td_data = namedtuple('soft_q_nstep_td_data', ['q', 'next_n_q', 'action', 'reward', 'done', 'weight'])


def soft_value(q: torch.Tensor, alpha: torch.Tensor | float, logit: torch.Tensor | None = None) -> torch.Tensor:
    """
    Overview:
        :math:`V = \\sum_a \\pi(a) (Q(a) - \\alpha \\log \\pi(a))`. Without logits the policy is :math:`softmax(Q /
        \\alpha)`, and the sum is :math:`\\alpha \\log \\sum_a e^{Q(a) / \\alpha}`. Soft Q-learning
        (arXiv:1702.08165), SQN (arXiv:1912.10891).
    Arguments:
        - q (:obj:`torch.Tensor`): action values
        - alpha (:obj:`torch.Tensor | float`): temperature, positive
        - logit (:obj:`torch.Tensor | None`): of the policy, as in discrete SAC; None is the policy of ``q`` itself
    Shapes:
        - q, logit (:obj:`torch.FloatTensor`): :math:`(*, N)`; the result has shape :math:`(*)`
    """
    if logit is None:
        return alpha * torch.logsumexp(q / alpha, dim=-1)
    check_shape('soft_value', logit=(logit, q.shape))
    log_p = torch.log_softmax(logit, dim=-1)
    finite = log_p.masked_fill(log_p.isneginf(), 0.0)  # a masked action has probability 0 and adds nothing
    return (log_p.exp() * (q - alpha * finite)).sum(-1)


def q_v_1step_td_error(data: q_v_1step_td_data, gamma: float, criterion: Criterion = squared_error) -> TDLoss:
    """
    Overview:
        One-step TD error of action values against the (soft) value of the next state,
        :math:`mean(w (r + \\gamma (1 - d) V' - Q(a))^2)`, as in discrete SAC (arXiv:1910.07207).
    Arguments:
        - data (:obj:`q_v_1step_td_data`): ``v`` is the value of the next state; ``done`` may be bool or float,
          ``done`` and ``weight`` may be None
        - gamma (:obj:`float`): discount factor in [0, 1]
        - criterion (:obj:`Criterion`): error of value and target, one per sample
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean error, 0-dim; signed error target - q per sample, detached)
    Shapes:
        - q (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - act (:obj:`torch.LongTensor`): :math:`(B, )`
        - v, reward, done, weight, td_error_per_sample (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    q, v, action, reward, done, weight = data
    where = 'q_v_1step_td_error'
    value = _taken(where, q, action, weight)
    check_shape(where, v=(v, value.shape), reward=(reward, value.shape))
    target = nstep_target(reward, v.detach(), done, gamma, 1, cum_reward=True, where=where)
    return reduce_td(value, target, weight, criterion, where)


def soft_q_nstep_td_error(
    data: soft_q_nstep_td_data,
    gamma: float,
    alpha: torch.Tensor | float,
    nstep: int = 1,
    value_gamma: torch.Tensor | float | None = None,
    criterion: Criterion = squared_error,
) -> TDLoss:
    """
    Overview:
        n-step TD error of soft Q-learning, :math:`mean(w (\\sum_{k<n} \\gamma^k r_k + \\gamma^n (1 - d) V_n -
        Q(a))^2)`, where :math:`V_n = \\alpha \\log \\sum_a e^{Q'(a) / \\alpha}` (arXiv:1702.08165).
    Arguments:
        - data (:obj:`soft_q_nstep_td_data`): fields as below; ``done`` may be bool or float, ``done`` and ``weight``
          may be None
        - gamma (:obj:`float`): discount factor in [0, 1]
        - alpha (:obj:`torch.Tensor | float`): temperature, positive
        - nstep (:obj:`int`): number of rewards
        - value_gamma (:obj:`torch.Tensor | float | None`): replaces :math:`\\gamma^n` where fewer steps were taken
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean error, 0-dim; signed error target - q per sample, detached)
    Shapes:
        - q, next_n_q (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - action (:obj:`torch.LongTensor`): :math:`(B, )`
        - reward (:obj:`torch.FloatTensor`): :math:`(nstep, B)`, time first; :math:`(B, )` is accepted when nstep is 1
        - done, weight, value_gamma, td_error_per_sample (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    q, next_q, action, reward, done, weight = data
    where = 'soft_q_nstep_td_error'
    value = _taken(where, q, action, weight)
    check_shape(where, next_n_q=(next_q, q.shape))
    with torch.no_grad():
        next_value = soft_value(next_q, alpha)
    target = nstep_target(reward, next_value, done, gamma, nstep, value_gamma, where=where)
    return reduce_td(value, target, weight, criterion, where)


def _taken(where: str, q: torch.Tensor, action: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    check_rank(where, 'q', q, 2, '(B, N)')
    check_shape(where, action=(action, q.shape[:1]), weight=(weight, q.shape[:1]))
    return chosen(where, q, action)
