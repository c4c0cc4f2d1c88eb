"""Temporal-difference errors of action values and state values: one step, n steps, rescaled, soft, several heads."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.checks import (
    ShapeError,
    check_alike,
    check_rank,
    check_shape,
    check_tensor,
    chosen,
    not_done,
    weighted_mean,
)
from nervex.rl_utils.transforms import value_inv_transform, value_transform

Rescale = Callable[[torch.Tensor], torch.Tensor]

Criterion = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
squared_error = nn.MSELoss(reduction='none')

nstep_return_data = namedtuple('nstep_return_data', ['reward', 'next_value', 'done'])
q_1step_td_data = namedtuple('q_1step_td_data', ['q', 'next_q', 'act', 'next_act', 'reward', 'done', 'weight'])
q_nstep_td_data = namedtuple(
    'q_nstep_td_data', ['q', 'next_n_q', 'action', 'next_n_action', 'reward', 'done', 'weight']
)
v_1step_td_data = namedtuple('v_1step_td_data', ['v', 'next_v', 'reward', 'done', 'weight'])
v_nstep_td_data = namedtuple(
    'v_nstep_td_data', ['v', 'next_n_v', 'reward', 'done', 'weight', 'value_gamma'], defaults=(None,)
)
soft_q_nstep_td_data = namedtuple('soft_q_nstep_td_data', ['q', 'next_n_q', 'action', 'reward', 'done', 'weight'])


class TDLoss(NamedTuple):
    """
    Overview:
        A loss and the error of each sample. It unpacks as the pair ``loss, td_error_per_sample``, and it can be used
        as the loss itself through ``backward()`` and ``item()``.
    """

    loss: torch.Tensor
    td_error_per_sample: torch.Tensor

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Backpropagate ``loss``; arguments as those of ``torch.Tensor.backward``."""
        self.loss.backward(*args, **kwargs)

    def item(self) -> float:
        """The value of ``loss``."""
        return self.loss.item()


def reduce_td(
    value: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, criterion: Criterion, where: str
) -> TDLoss:
    """The weighted mean of ``criterion(value, target)``, and the signed error of each sample, which is its priority."""
    target = target.detach()
    per_sample = criterion(value, target)
    if per_sample.shape != value.shape:
        raise ShapeError(
            f'{where}: criterion returned shape {tuple(per_sample.shape)} for values {tuple(value.shape)}; '
            f"it must keep one error per sample: build it with reduction='none'"
        )
    return TDLoss(weighted_mean(per_sample, weight), target - value.detach())


# ---- targets ----
def discounted_sum(reward: torch.Tensor, gamma: float) -> torch.Tensor:
    """:math:`\\sum_k \\gamma^k r_k` over the first axis."""
    total = reward[-1]
    for k in range(reward.shape[0] - 2, -1, -1):
        total = torch.add(reward[k], total, alpha=gamma)
    return total


def check_nstep_reward(where: str, reward: torch.Tensor, batch: int, nstep: int) -> torch.Tensor:
    """Rewards as :math:`(nstep, B)`. With ``nstep == 1`` rewards :math:`(B, )` are taken as one row."""
    check_tensor(where, 'reward', reward, f'(nstep, B) = {(nstep, batch)}')
    if nstep < 1:
        raise ValueError(f'{where}: nstep is the number of rewards, at least 1, got {nstep}')
    if reward.dim() == 1 and nstep == 1 and reward.shape[0] == batch:
        return reward.unsqueeze(0)
    if reward.shape == (nstep, batch):
        return reward
    shape = tuple(reward.shape)
    if reward.shape == (batch, nstep):
        remedy = f'time comes first: pass reward.permute(1, 0), which turns {shape} into {(nstep, batch)}'
    elif reward.dim() == 1 and reward.shape[0] == batch:
        remedy = f'{nstep} rewards a sample are needed; if they are summed already, use cum_reward=True'
    else:
        remedy = f'collect {nstep} rewards for each of the {batch} samples, or pass their nstep'
    raise ShapeError(f'{where}: reward has shape {shape}, expected (nstep, B) = {(nstep, batch)}; {remedy}')


def nstep_target(
    reward: torch.Tensor,
    next_value: torch.Tensor,
    done: torch.Tensor | None,
    gamma: float,
    nstep: int,
    value_gamma: torch.Tensor | float | None = None,
    cum_reward: bool = False,
    where: str = 'nstep_return',
) -> torch.Tensor:
    """
    Overview:
        :math:`\\sum_{k<n} \\gamma^k r_k + \\gamma^n (1 - d) V_n`, the target of all n-step errors.
    Arguments:
        - value_gamma (:obj:`torch.Tensor | float | None`): replaces :math:`\\gamma^n` where fewer steps were taken
        - cum_reward (:obj:`bool`): ``reward`` is the finished sum, :math:`(B, )`
    Shapes:
        - reward (:obj:`torch.FloatTensor`): :math:`(nstep, B)`
        - next_value (:obj:`torch.FloatTensor`), done, value_gamma: :math:`(B, )`
    """
    batch = next_value.shape[0]
    check_shape(where, done=(done, (batch,)))
    if cum_reward:
        check_shape(where, reward=(reward, (batch,)))
        total = reward
    else:
        rewards = check_nstep_reward(where, reward, batch, nstep)
        total = discounted_sum(rewards if rewards.is_floating_point() else rewards.to(next_value.dtype), gamma)
    keep = not_done(done, next_value)
    if isinstance(value_gamma, torch.Tensor):
        if value_gamma.dim() > 0:
            check_shape(where, value_gamma=(value_gamma, (batch,)))
        keep = value_gamma if keep is None else keep * value_gamma
        return torch.addcmul(total, keep, next_value)
    factor = gamma**nstep if value_gamma is None else value_gamma
    if keep is None:
        return torch.add(total, next_value, alpha=factor)
    return torch.addcmul(total, keep, next_value, value=factor)


def nstep_return(
    data: nstep_return_data, gamma: float, nstep: int, value_gamma: torch.Tensor | float | None = None
) -> torch.Tensor:
    """
    Overview:
        The n-step return, :math:`\\sum_{k<n} \\gamma^k r_k + \\gamma^n (1 - d) V_n`. Sutton and Barto, Reinforcement
        Learning: An Introduction, chapter 7.
    Arguments:
        - data (:obj:`nstep_return_data`): fields as below; the rest as in :func:`q_nstep_td_error`
    Shapes:
        - reward (:obj:`torch.FloatTensor`): :math:`(nstep, B)`
        - next_value, done, value_gamma, result (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    reward, next_value, done = data
    check_rank('nstep_return', 'next_value', next_value, 1, '(B, )')
    return nstep_target(reward, next_value, done, gamma, nstep, value_gamma)


# ---- action values ----
def q_1step_td_error(data: q_1step_td_data, gamma: float, criterion: Criterion = squared_error) -> torch.Tensor:
    """
    Overview:
        One-step TD error of action values, :math:`mean(w (r + \\gamma (1 - d) Q'(a') - Q(a))^2)`; returns the 0-dim
        loss itself, so that losses can be summed. The caller chooses the next action: plain and Double DQN share it.
        Playing Atari with Deep Reinforcement Learning (arXiv:1312.5602).
    Arguments:
        - data (:obj:`q_1step_td_data`): fields as below; the rest as in :func:`q_nstep_td_error`
    Shapes:
        - q, next_q (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - act, next_act (:obj:`torch.LongTensor`), reward, done, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
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
        - trans_fn, inv_trans_fn (:obj:`Callable`): h and its inverse; the rest as in :func:`q_nstep_td_error`
    Shapes:
        - q, next_n_q (:obj:`torch.FloatTensor`): :math:`(B, N)`; the rest as in :func:`q_nstep_td_error`
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
    """The values (B, ) of the taken and of the next actions, after the checks that all action-value errors share."""
    check_rank(where, 'q', q, 2, '(B, N)')
    batch = q.shape[:1]
    check_alike(where, q.shape, next_q=next_q)
    check_alike(where, batch, action=action, next_action=next_action, weight=weight)
    return chosen(where, q, action), chosen(where, next_q.detach(), next_action)


def multi_discrete_td_error(
    data: Any, gamma: float, td_error: Callable[..., Any] = q_nstep_td_error, **kwargs: Any
) -> TDLoss:
    """
    Overview:
        The mean of the heads' losses, :math:`\\frac{1}{H} \\sum_h L_h`, and the mean size of their errors per sample
        (signed ones would cancel). Action Branching Architectures (arXiv:1711.08946).
    Arguments:
        - data (:obj:`namedtuple`): what ``td_error`` takes, e.g. ``q_nstep_td_data``, but its value and action fields
          are lists with one tensor per head; actions may also be one tensor, heads last. Fields that are not lists
          serve all heads
        - gamma (:obj:`float`): discount factor in [0, 1]
        - td_error (:obj:`Callable`): the loss of one head
        - kwargs (:obj:`dict`): handed on to ``td_error``, e.g. ``nstep``
    Returns:
        - loss (:obj:`TDLoss`): the pair (mean loss, 0-dim; mean absolute error of the heads per sample, detached)
    Shapes:
        - q, next_q: lists of :math:`(B, N_i)`
        - action, next_action (:obj:`torch.LongTensor`): lists of :math:`(B, )`, or :math:`(B, heads)`
        - reward, done, weight: as in ``td_error``; td_error_per_sample: :math:`(B, )`
    """
    heads = len(data[0])
    columns = []
    for name, field in zip(data._fields, data):
        if isinstance(field, torch.Tensor) and 'act' in name and field.dim() == 2:
            field = field.unbind(1)
        column = list(field) if isinstance(field, (list, tuple)) else [field] * heads
        if len(column) != heads:
            raise ValueError(f'multi_discrete_td_error: {name} has {len(column)} heads, {data._fields[0]} has {heads}')
        columns.append(column)
    results = [td_error(type(data)(*fields), gamma, **kwargs) for fields in zip(*columns)]
    if isinstance(results[0], torch.Tensor):
        raise TypeError(f'multi_discrete_td_error: {td_error.__name__} gives no error per sample; use an n-step error')
    return TDLoss(sum(r[0] for r in results) / heads, sum(r[1].abs() for r in results) / heads)


# ---- state values ----
def v_1step_td_error(data: v_1step_td_data, gamma: float, criterion: Criterion = squared_error) -> TDLoss:
    """
    Overview:
        One-step TD error of state values, or of the values of taken actions as in DDPG (arXiv:1509.02971), TD3 and
        QMIX: :math:`mean(w (r + \\gamma (1 - d) V' - V)^2)`.
    Arguments:
        - data (:obj:`v_1step_td_data`): fields as below; the rest as in :func:`q_nstep_td_error`
    Shapes:
        - v, next_v, reward, done, weight, td_error_per_sample (:obj:`torch.FloatTensor`): one shape, usually
          :math:`(B, )`
    """
    v, next_v, reward, done, weight = data
    shape, where = v.shape, 'v_1step_td_error'
    check_alike(where, shape, next_v=next_v, reward=reward, done=done, weight=weight)
    over = None if done is None else done.reshape(-1)
    target = nstep_target(reward.reshape(-1), next_v.detach().reshape(-1), over, gamma, 1, cum_reward=True, where=where)
    return reduce_td(v, target.reshape(shape), weight, criterion, where)


def v_nstep_td_error(
    data: v_nstep_td_data, gamma: float, nstep: int = 1, criterion: Criterion = squared_error
) -> TDLoss:
    """
    Overview:
        n-step TD error of state values, :math:`mean(w (\\sum_{k<n} \\gamma^k r_k + \\gamma^n (1 - d) V_n - V)^2)`.
        Sutton and Barto, Reinforcement Learning: An Introduction, chapter 7.
    Arguments:
        - data (:obj:`v_nstep_td_data`): fields as below; the rest as in :func:`q_nstep_td_error`
    Shapes:
        - v, next_n_v (:obj:`torch.FloatTensor`): :math:`(B, )`; the rest as in :func:`q_nstep_td_error`
    """
    v, next_v, reward, done, weight, value_gamma = data
    where = 'v_nstep_td_error'
    check_rank(where, 'v', v, 1, '(B, )')
    check_alike(where, v.shape, next_n_v=next_v, weight=weight)
    target = nstep_target(reward, next_v.detach(), done, gamma, nstep, value_gamma, where=where)
    return reduce_td(v, target, weight, criterion, where)


# ---- soft action values ----
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
        - data (:obj:`soft_q_nstep_td_data`): fields as below; the rest as in :func:`q_nstep_td_error`
        - alpha (:obj:`torch.Tensor | float`): temperature, positive
    Shapes:
        - q, next_n_q (:obj:`torch.FloatTensor`): :math:`(B, N)`; the rest as in :func:`q_nstep_td_error`
    """
    q, next_q, action, reward, done, weight = data
    where = 'soft_q_nstep_td_error'
    check_rank(where, 'q', q, 2, '(B, N)')
    check_alike(where, q.shape, next_n_q=next_q)
    check_alike(where, q.shape[:1], action=action, weight=weight)
    value = chosen(where, q, action)
    with torch.no_grad():
        next_value = soft_value(next_q, alpha)
    target = nstep_target(reward, next_value, done, gamma, nstep, value_gamma, where=where)
    return reduce_td(value, target, weight, criterion, where)
