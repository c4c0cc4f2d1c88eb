"""Temporal-difference errors of action values."""

from collections import namedtuple
from collections.abc import Callable

import torch

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.checks import check_rank, check_shape, chosen
from nervex.rl_utils.td.loss import Criterion, TDLoss, reduce_td, squared_error
from nervex.rl_utils.td.nstep import nstep_target
from nervex.rl_utils.value_rescale import value_inv_transform, value_transform

Rescale = Callable[[torch.Tensor], torch.Tensor]

q_1step_td_data = namedtuple('q_1step_td_data', ['q', 'next_q', 'act', 'next_act', 'reward', 'done', 'weight'])
q_nstep_td_data = namedtuple(
    'q_nstep_td_data', ['q', 'next_n_q', 'action', 'next_n_action', 'reward', 'done', 'weight']
)


def q_1step_td_error(data: q_1step_td_data, gamma: float, criterion: Criterion = squared_error) -> torch.Tensor:
    """
    Overview:
        One-step TD error of action values, :math:`mean(w (r + \\gamma (1 - d) Q'(a') - Q(a))^2)`; returns the 0-dim
        loss itself, so that losses can be summed. The caller chooses the next action: plain and Double DQN share it.
        Playing Atari with Deep Reinforcement Learning (arXiv:1312.5602).
    Arguments:
        - data (:obj:`q_1step_td_data`): fields as below; ``done`` may be bool or float, ``done`` and ``weight`` may
          be None
        - gamma (:obj:`float`): discount factor in [0, 1]
        - criterion (:obj:`Criterion`): error of value and target, one per sample
    Returns:
        - loss (:obj:`torch.Tensor`): mean(weight * (r + gamma (1 - d) next_q[next_act] - q[act])^2), 0-dim
    Shapes:
        - q, next_q (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - act, next_act (:obj:`torch.LongTensor`): :math:`(B, )`
        - reward, done, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    q, next_q, act, next_act, reward, done, weight = data
    value, next_value = take_actions('q_1step_td_error', q, next_q, act, next_act, weight)
    check_shape('q_1step_td_error', reward=(reward, (q.shape[0],)))
    target = nstep_target(reward, next_value, done, gamma, 1, cum_reward=True, where='q_1step_td_error')
    return reduce_td(value, target, weight, criterion, 'q_1step_td_error').loss


@hpc_wrapper()
def q_nstep_td_error(
    data: q_nstep_td_data,
    gamma: float,
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: torch.Tensor | float | None = None,
    criterion: Criterion = squared_error,
) -> TDLoss:
    """
    Overview:
        n-step TD error of action values, :math:`mean(w (\\sum_{k<n} \\gamma^k r_k + \\gamma^n (1 - d) Q'(a') -
        Q(a))^2)`. The caller chooses the next action: plain and Double DQN share it. Rainbow (arXiv:1710.02298),
        section on multi-step learning.
    Arguments:
        - data (:obj:`q_nstep_td_data`): fields as below; ``done`` may be bool or float, ``done`` and ``weight`` may
          be None
        - gamma (:obj:`float`): discount factor in [0, 1]
        - nstep (:obj:`int`): number of rewards
        - cum_reward (:obj:`bool`): ``reward`` is the discounted sum already, :math:`(B, )`
        - value_gamma (:obj:`torch.Tensor | float | None`): replaces :math:`\\gamma^n` where fewer steps were taken
        - criterion (:obj:`Criterion`): error of value and target, one per sample
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean error, 0-dim; signed error target - q per sample, detached)
    Shapes:
        - q, next_n_q (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - action, next_n_action (:obj:`torch.LongTensor`): :math:`(B, )`
        - reward (:obj:`torch.FloatTensor`): :math:`(nstep, B)`, time first; :math:`(B, )` is accepted when nstep is 1
        - done, weight, value_gamma, td_error_per_sample (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    q, next_q, action, next_action, reward, done, weight = data
    value, next_value = take_actions('q_nstep_td_error', q, next_q, action, next_action, weight)
    target = nstep_target(reward, next_value, done, gamma, nstep, value_gamma, cum_reward, 'q_nstep_td_error')
    return reduce_td(value, target, weight, criterion, 'q_nstep_td_error')


@hpc_wrapper()
def q_nstep_td_error_with_rescale(
    data: q_nstep_td_data,
    gamma: float,
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: torch.Tensor | float | None = None,
    criterion: Criterion = squared_error,
    trans_fn: Rescale = value_transform,
    inv_trans_fn: Rescale = value_inv_transform,
) -> TDLoss:
    """
    Overview:
        :func:`q_nstep_td_error` for networks that estimate transformed values h(Q): the next value is transformed
        back, and the target is :math:`h(\\sum_k \\gamma^k r_k + \\gamma^n (1 - d) h^{-1}(Q'))`. R2D2 (Recurrent
        Experience Replay in Distributed Reinforcement Learning), section 2.3; Observe and Look Further
        (arXiv:1805.11593).
    Arguments:
        - data, gamma, nstep, cum_reward, value_gamma, criterion: as in :func:`q_nstep_td_error`
        - trans_fn, inv_trans_fn (:obj:`Callable`): h and its inverse
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean error, 0-dim; signed error target - q per sample, detached)
    Shapes:
        - q, next_n_q (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - action, next_n_action (:obj:`torch.LongTensor`): :math:`(B, )`
        - reward (:obj:`torch.FloatTensor`): :math:`(nstep, B)`, time first; :math:`(B, )` is accepted when nstep is 1
        - done, weight, value_gamma, td_error_per_sample (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    q, next_q, action, next_action, reward, done, weight = data
    where = 'q_nstep_td_error_with_rescale'
    value, next_value = take_actions(where, q, next_q, action, next_action, weight)
    target = nstep_target(reward, inv_trans_fn(next_value), done, gamma, nstep, value_gamma, cum_reward, where)
    return reduce_td(value, trans_fn(target), weight, criterion, where)


def take_actions(
    where: str,
    q: torch.Tensor,
    next_q: torch.Tensor,
    action: torch.Tensor,
    next_action: torch.Tensor,
    weight: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Overview:
        The values of the taken and of the next actions, after the checks that all action-value errors share.
    Shapes:
        - q, next_q (:obj:`torch.FloatTensor`): :math:`(B, N)`; everything else :math:`(B, )`
    """
    check_rank(where, 'q', q, 2, '(B, N)')
    batch = q.shape[:1]
    check_shape(
        where,
        next_q=(next_q, q.shape),
        action=(action, batch),
        next_action=(next_action, batch),
        weight=(weight, batch),
    )
    return chosen(where, q, action), chosen(where, next_q.detach(), next_action)
