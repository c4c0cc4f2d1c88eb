"""Temporal-difference errors of value distributions: categorical (C51) and by quantiles (IQN, QR-DQN)."""

from collections import namedtuple
from typing import Any

import torch

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.checks import ShapeError, check_alike, check_rank, chosen, weighted_mean
from nervex.rl_utils.td.q import TDLoss, nstep_target

dist_1step_td_data = namedtuple(
    'dist_1step_td_data', ['dist', 'next_dist', 'act', 'next_act', 'reward', 'done', 'weight']
)
dist_nstep_td_data = namedtuple(
    'dist_nstep_td_data', ['dist', 'next_n_dist', 'act', 'next_n_act', 'reward', 'done', 'weight']
)
iqn_nstep_td_data = namedtuple(
    'iqn_nstep_td_data', ['q', 'next_n_q', 'action', 'next_n_action', 'reward', 'done', 'replay_quantiles', 'weight']
)
qrdqn_nstep_td_data = namedtuple(
    'qrdqn_nstep_td_data', ['q', 'next_n_q', 'action', 'next_n_action', 'reward', 'done', 'tau', 'weight']
)


def dist_1step_td_error(
    data: dist_1step_td_data, gamma: float, v_min: float, v_max: float, n_atom: int
) -> torch.Tensor:
    """
    Overview:
        One-step error of a categorical value distribution, :math:`mean(-w \\sum_i m_i \\log p_i(a))`, where m is
        :math:`r + \\gamma (1 - d) z` with the next probabilities, projected onto the support z; returns the 0-dim
        loss itself, so that losses can be summed. A Distributional Perspective on Reinforcement Learning
        (arXiv:1707.06887).
    Arguments:
        - data (:obj:`dist_1step_td_data`): rewards of one step; the rest as in :func:`dist_nstep_td_error`
    Shapes:
        - dist, next_dist (:obj:`torch.FloatTensor`): :math:`(B, N, n\\_atom)`
        - act, next_act (:obj:`torch.LongTensor`), reward, done, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    return dist_nstep_td_error(dist_nstep_td_data(*data), gamma, v_min, v_max, n_atom).loss


@hpc_wrapper()
def dist_nstep_td_error(
    data: dist_nstep_td_data,
    gamma: float,
    v_min: float,
    v_max: float,
    n_atom: int,
    nstep: int = 1,
    value_gamma: torch.Tensor | float | None = None,
) -> TDLoss:
    """
    Overview:
        n-step error of a categorical value distribution: the next distribution, moved by the rewards and shrunk by
        the discount, is projected onto the support, and the loss is the cross-entropy to it, :math:`mean(-w \\sum_i
        m_i \\log p_i(a))`, where m projects :math:`\\sum_{k<n} \\gamma^k r_k + \\gamma^n (1 - d) z`. A Distributional
        Perspective on Reinforcement Learning (arXiv:1707.06887); n steps as in Rainbow (arXiv:1710.02298).
    Arguments:
        - data (:obj:`dist_nstep_td_data`): ``dist`` and ``next_n_dist`` are probabilities
        - v_min, v_max (:obj:`float`): first and last atom of the support
        - n_atom (:obj:`int`): number of atoms, at least 2; the rest as in :func:`q_nstep_td_error`
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean cross-entropy, 0-dim; cross-entropy per sample, detached)
    Shapes:
        - dist, next_n_dist (:obj:`torch.FloatTensor`): :math:`(B, N, n\\_atom)`
        - act, next_n_act (:obj:`torch.LongTensor`): :math:`(B, )`
        - reward, done, weight, value_gamma, td_error_per_sample: as in :func:`q_nstep_td_error`
    """
    dist, next_dist, action, next_action, reward, done, weight = data
    where = 'dist_nstep_td_error'
    check_rank(where, 'dist', dist, 3, '(B, N, n_atom)')
    batch = dist.shape[:1]
    check_alike(where, dist.shape, next_n_dist=next_dist)
    check_alike(where, batch, act=action, next_n_act=next_action, weight=weight)
    if dist.shape[2] != n_atom or n_atom < 2 or not v_min < v_max:
        raise ShapeError(
            f'{where}: dist has {dist.shape[2]} atoms; needs n_atom = {n_atom} >= 2 of them and v_min < v_max, '
            f'got {v_min} and {v_max}'
        )
    with torch.no_grad():
        support = torch.linspace(v_min, v_max, n_atom, device=dist.device, dtype=dist.dtype)
        atoms = _moved(where, support.expand(len(dist), -1), reward, done, gamma, nstep, value_gamma)
        target = project_distribution(_of_action(where, next_dist, next_action), atoms, v_min, v_max)
    log_p = _of_action(where, dist, action).clamp_min(torch.finfo(dist.dtype).tiny).log()
    cross_entropy = -(target * log_p).sum(-1)
    return TDLoss(weighted_mean(cross_entropy, weight), cross_entropy.detach())


def _of_action(where: str, dist: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """Shapes: dist (B, N, n_atom), action (B, ), result (B, n_atom)."""
    return chosen(where, dist.transpose(1, 2), action.unsqueeze(1).expand(-1, dist.shape[2]))


def project_distribution(prob: torch.Tensor, atoms: torch.Tensor, v_min: float, v_max: float) -> torch.Tensor:
    """
    Overview:
        Share the probability of each moved atom between its two neighbours on the even support from v_min to v_max.
        Atoms beyond the support count as its ends. All tensors have shape :math:`(B, n\\_atom)`.
    """
    last = prob.shape[1] - 1
    position = (atoms.clamp(v_min, v_max) - v_min) * (last / (v_max - v_min))
    lower = position.floor().clamp(0, last)
    to_upper = (position - lower).clamp(0, 1)
    lower = lower.long()
    upper = (lower + 1).clamp_max(last)
    projected = torch.zeros_like(prob)
    return projected.scatter_add(1, lower, prob * (1 - to_upper)).scatter_add(1, upper, prob * to_upper)


def iqn_nstep_td_error(
    data: iqn_nstep_td_data,
    gamma: float,
    nstep: int = 1,
    kappa: float = 1.0,
    value_gamma: torch.Tensor | float | None = None,
) -> TDLoss:
    """
    Overview:
        n-step error of sampled quantiles: the quantile Huber loss, summed over the own quantiles and averaged over
        those of the target, :math:`\\frac{1}{\\tau'} \\sum_{i,j} |\\tau_i - 1\\{\\delta_{ij} < 0\\}|
        L_\\kappa(\\delta_{ij}) / \\kappa`, :math:`\\delta_{ij} = \\sum_{k<n} \\gamma^k r_k + \\gamma^n (1 - d)
        Q'_j(a') - Q_i(a)`. Implicit Quantile Networks (arXiv:1806.06923).
    Arguments:
        - data (:obj:`iqn_nstep_td_data`): fields as below
        - kappa (:obj:`float`): where the Huber loss turns linear; 0 is the plain quantile loss; the rest as in
          :func:`q_nstep_td_error`
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean loss, 0-dim; loss per sample, detached)
    Shapes:
        - q (:obj:`torch.FloatTensor`): :math:`(\\tau, B, N)`
        - next_n_q (:obj:`torch.FloatTensor`): :math:`(\\tau', B, N)`
        - replay_quantiles (:obj:`torch.FloatTensor`): :math:`(\\tau, B)`, :math:`(\\tau, B, 1)` or :math:`(\\tau B,
          1)`: fractions of ``q``
        - action, next_n_action, reward, done, weight, td_error_per_sample: as in :func:`q_nstep_td_error`
    """
    q, next_q, action, next_action, _, _, quantiles, weight = data
    where = 'iqn_nstep_td_error'
    check_rank(where, 'q', q, 3, '(tau, B, N)')
    check_rank(where, 'next_n_q', next_q, 3, "(tau', B, N)")
    tau, batch, _ = q.shape
    check_alike(where, (next_q.shape[0], *q.shape[1:]), next_n_q=next_q)
    check_alike(where, (batch,), action=action, next_n_action=next_action, weight=weight)
    if quantiles.numel() != tau * batch:
        raise ShapeError(f'{where}: replay_quantiles has shape {tuple(quantiles.shape)}, expected {(tau, batch)}')
    value = chosen(where, q, action.expand(tau, batch)).t()
    next_value = chosen(where, next_q, next_action.expand(len(next_q), batch)).t()
    fractions = quantiles.reshape(tau, batch).t()
    return _quantile_td(where, value, next_value, fractions, data, kappa, gamma, nstep, value_gamma)


def qrdqn_nstep_td_error(
    data: qrdqn_nstep_td_data,
    gamma: float,
    nstep: int = 1,
    value_gamma: torch.Tensor | float | None = None,
    kappa: float = 1.0,
) -> TDLoss:
    """
    Overview:
        n-step error of fixed quantiles: the quantile Huber loss, summed over the own quantiles and averaged over
        those of the target, :math:`\\frac{1}{\\tau'} \\sum_{i,j} |\\tau_i - 1\\{\\delta_{ij} < 0\\}|
        L_\\kappa(\\delta_{ij}) / \\kappa`, :math:`\\delta_{ij} = \\sum_{k<n} \\gamma^k r_k + \\gamma^n (1 - d)
        Q'_j(a') - Q_i(a)`. Distributional RL with Quantile Regression (arXiv:1710.10044).
    Arguments:
        - data (:obj:`qrdqn_nstep_td_data`): fields as below; the rest as in :func:`iqn_nstep_td_error`
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean loss, 0-dim; loss per sample, detached)
    Shapes:
        - q (:obj:`torch.FloatTensor`): :math:`(B, N, \\tau)`; next_n_q: :math:`(B, N, \\tau')`
        - tau (:obj:`torch.FloatTensor`): the fractions, :math:`(\\tau, )`, :math:`(1, \\tau)` or :math:`(B, \\tau)`,
          also with a last axis of 1
        - action, next_n_action, reward, done, weight, td_error_per_sample: as in :func:`q_nstep_td_error`
    """
    q, next_q, action, next_action, _, _, tau, weight = data
    where = 'qrdqn_nstep_td_error'
    check_rank(where, 'q', q, 3, '(B, N, tau)')
    check_rank(where, 'next_n_q', next_q, 3, "(B, N, tau')")
    batch, _, count = q.shape
    check_alike(where, (*q.shape[:2], next_q.shape[2]), next_n_q=next_q)
    check_alike(where, (batch,), action=action, next_n_action=next_action, weight=weight)
    if tau.numel() not in (count, batch * count):
        raise ShapeError(f'{where}: tau has shape {tuple(tau.shape)}, expected {(count,)} or {(batch, count)}')
    value = chosen(where, q.transpose(1, 2), action.unsqueeze(1).expand(batch, count))
    next_value = chosen(where, next_q.transpose(1, 2), next_action.unsqueeze(1).expand(batch, next_q.shape[2]))
    fractions = tau.reshape(-1, count)
    return _quantile_td(where, value, next_value, fractions, data, kappa, gamma, nstep, value_gamma)


def _quantile_td(
    where: str,
    value: torch.Tensor,
    next_value: torch.Tensor,
    fractions: torch.Tensor,
    data: Any,
    kappa: float,
    *how: Any,
) -> TDLoss:
    """Shapes: value (B, tau), next_value (B, tau'), fractions (B or 1, tau); ``how`` are gamma, nstep, value_gamma."""
    if kappa < 0:
        raise ValueError(f'{where}: kappa is a width, at least 0, got {kappa}')
    with torch.no_grad():
        target = _moved(where, next_value, data.reward, data.done, *how)
    per_sample = quantile_huber_loss(value, target, fractions, kappa)
    return TDLoss(weighted_mean(per_sample, data.weight), per_sample.detach())


def _moved(
    where: str, values: torch.Tensor, reward: torch.Tensor, done: torch.Tensor | None, *how: Any
) -> torch.Tensor:
    """The n-step targets of several values a sample, (B, N); ``how`` are gamma, nstep, value_gamma."""
    zero = torch.zeros_like(values[:, 0])
    gamma, nstep, value_gamma = how
    shift = nstep_target(reward, zero, done, gamma, nstep, value_gamma, where=where)
    scale = nstep_target(zero, torch.ones_like(zero), done, gamma, nstep, value_gamma, True, where)
    return torch.addcmul(shift.unsqueeze(1), scale.unsqueeze(1), values)


def quantile_huber_loss(
    value: torch.Tensor, target: torch.Tensor, fractions: torch.Tensor, kappa: float = 1.0
) -> torch.Tensor:
    """
    Overview:
        :math:`\\frac{1}{\\tau'} \\sum_{i,j} |\\tau_i - 1\\{\\delta_{ij} < 0\\}| L_\\kappa(\\delta_{ij}) / \\kappa` with
        :math:`\\delta_{ij} = target_j - value_i`.
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(B, \\tau)`
        - target (:obj:`torch.FloatTensor`): :math:`(B, \\tau')`
        - fractions (:obj:`torch.FloatTensor`): :math:`(B, \\tau)` or :math:`(1, \\tau)`; the result has shape
          :math:`(B, )`
    """
    delta = target.unsqueeze(1) - value.unsqueeze(2)
    size = delta.abs()
    huber = size if kappa == 0 else torch.where(size <= kappa, 0.5 / kappa * delta.pow(2), size - 0.5 * kappa)
    asymmetry = (fractions.unsqueeze(2) - (delta.detach() < 0).to(delta.dtype)).abs()
    return (asymmetry * huber).sum(1).mean(1)
