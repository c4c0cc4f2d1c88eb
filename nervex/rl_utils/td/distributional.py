"""Temporal-difference errors of categorical value distributions (C51)."""

from collections import namedtuple

import torch

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.checks import ShapeError, check_rank, check_shape, chosen, weighted_mean
from nervex.rl_utils.td.loss import TDLoss
from nervex.rl_utils.td.nstep import nstep_target

dist_1step_td_data = namedtuple(
    'dist_1step_td_data', ['dist', 'next_dist', 'act', 'next_act', 'reward', 'done', 'weight']
)
dist_nstep_td_data = namedtuple(
    'dist_nstep_td_data', ['dist', 'next_n_dist', 'act', 'next_n_act', 'reward', 'done', 'weight']
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
        - data (:obj:`dist_1step_td_data`): fields as in :func:`dist_nstep_td_error`, with rewards of one step
        - gamma, v_min, v_max, n_atom: as in :func:`dist_nstep_td_error`
    Returns:
        - loss (:obj:`torch.Tensor`): weighted mean cross-entropy, 0-dim
    Shapes:
        - dist, next_dist (:obj:`torch.FloatTensor`): :math:`(B, N, n\\_atom)`
        - act, next_act (:obj:`torch.LongTensor`): :math:`(B, )`
        - reward, done, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
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
        - data (:obj:`dist_nstep_td_data`): ``dist`` and ``next_n_dist`` are probabilities; ``done`` may be bool or
          float, ``done`` and ``weight`` may be None
        - gamma (:obj:`float`): discount factor in [0, 1]
        - v_min, v_max (:obj:`float`): first and last atom of the support
        - n_atom (:obj:`int`): number of atoms, at least 2
        - nstep (:obj:`int`): number of rewards
        - value_gamma (:obj:`torch.Tensor | float | None`): replaces :math:`\\gamma^n` where fewer steps were taken
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean cross-entropy, 0-dim; cross-entropy per sample, detached)
    Shapes:
        - dist, next_n_dist (:obj:`torch.FloatTensor`): :math:`(B, N, n\\_atom)`
        - act, next_n_act (:obj:`torch.LongTensor`): :math:`(B, )`
        - reward (:obj:`torch.FloatTensor`): :math:`(nstep, B)`, time first; :math:`(B, )` is accepted when nstep is 1
        - done, weight, value_gamma, td_error_per_sample (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    dist, next_dist, action, next_action, reward, done, weight = data
    where = 'dist_nstep_td_error'
    check_rank(where, 'dist', dist, 3, '(B, N, n_atom)')
    batch = dist.shape[:1]
    check_shape(
        where,
        next_n_dist=(next_dist, dist.shape),
        act=(action, batch),
        next_n_act=(next_action, batch),
        weight=(weight, batch),
    )
    if dist.shape[2] != n_atom or n_atom < 2 or not v_min < v_max:
        raise ShapeError(
            f'{where}: dist has {dist.shape[2]} atoms; needs n_atom = {n_atom} >= 2 of them and v_min < v_max, '
            f'got {v_min} and {v_max}'
        )
    with torch.no_grad():
        support = torch.linspace(v_min, v_max, n_atom, device=dist.device, dtype=dist.dtype)
        zero = torch.zeros_like(dist[:, 0, 0])
        shift = nstep_target(reward, zero, done, gamma, nstep, value_gamma, where=where)
        scale = nstep_target(zero, torch.ones_like(zero), done, gamma, nstep, value_gamma, True, where)
        atoms = torch.addcmul(shift.unsqueeze(1), scale.unsqueeze(1), support)
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
        Atoms beyond the support count as its ends.
    Shapes:
        - prob, atoms, result (:obj:`torch.FloatTensor`): :math:`(B, n\\_atom)`
    """
    last = prob.shape[1] - 1
    position = (atoms.clamp(v_min, v_max) - v_min) * (last / (v_max - v_min))
    lower = position.floor().clamp(0, last)
    to_upper = (position - lower).clamp(0, 1)
    lower = lower.long()
    upper = (lower + 1).clamp_max(last)
    projected = torch.zeros_like(prob)
    return projected.scatter_add(1, lower, prob * (1 - to_upper)).scatter_add(1, upper, prob * to_upper)
