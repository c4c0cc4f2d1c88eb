"""Upgoing policy update: learn from trajectories that went better than expected."""

import torch

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.categorical import log_prob
from nervex.rl_utils.checks import ShapeError, check_shape
from nervex.rl_utils.gae import successors
from nervex.rl_utils.td.returns import multistep_forward_view


def upgo_returns(
    rewards: torch.Tensor,
    bootstrap_values: torch.Tensor,
    gamma: float = 1.0,
    done: torch.Tensor | None = None,
    truncated: torch.Tensor | None = None,
    next_value: torch.Tensor | None = None,
) -> torch.Tensor:
    """
    Overview:
        :math:`G_t = r_t + \\gamma G_{t+1}` while the next step does at least as well as its value promised,
        :math:`r_{t+1} + \\gamma V_{t+2} \\ge V_{t+1}`, otherwise :math:`r_t + \\gamma V_{t+1}`. Grandmaster level in
        StarCraft II (doi:10.1038/s41586-019-1724-z), methods.
    Arguments:
        - rewards, bootstrap_values (:obj:`torch.Tensor`): as below
        - gamma (:obj:`float`): discount factor in [0, 1]
        - done, truncated, next_value (:obj:`torch.Tensor | None`): as in :func:`nervex.rl_utils.gae`
    Shapes:
        - rewards, done, truncated, next_value, result (:obj:`torch.FloatTensor`): :math:`(T, B)`
        - bootstrap_values (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`
    """
    value, following, bootstrap, trace = successors(
        'upgo_returns', bootstrap_values, rewards, done, truncated, next_value
    )
    discount = torch.full_like(rewards, gamma) if bootstrap is None else gamma * bootstrap
    better = (rewards + discount * following >= value).to(rewards.dtype)
    goes_on = torch.cat([better[1:], torch.ones_like(better[:1])])
    return multistep_forward_view(following, rewards, discount, goes_on if trace is None else goes_on * trace)


@hpc_wrapper()
def upgo_loss(
    target_output: torch.Tensor,
    rhos: torch.Tensor,
    action: torch.Tensor,
    rewards: torch.Tensor,
    bootstrap_values: torch.Tensor,
    mask: torch.Tensor | None = None,
    gamma: float = 1.0,
    done: torch.Tensor | None = None,
    truncated: torch.Tensor | None = None,
    next_value: torch.Tensor | None = None,
) -> torch.Tensor:
    """
    Overview:
        :math:`-mean(\\rho_t (G_t - V_t) \\log \\pi(a_t))` with the returns of :func:`upgo_returns`
        (doi:10.1038/s41586-019-1724-z).
    Arguments:
        - target_output (:obj:`torch.Tensor`): logits of the policy that learns
        - rhos (:obj:`torch.Tensor`): importance weights, usually clipped at 1
        - mask (:obj:`torch.Tensor | None`): 0 where an action counts for nothing
        - gamma, done, truncated, next_value: as in :func:`upgo_returns`
    Returns:
        - loss (:obj:`torch.Tensor`): 0-dim
    Shapes:
        - target_output (:obj:`torch.FloatTensor`): :math:`(T, B, N)`, or :math:`(T, B, S, N)` for S actions a step
        - action (:obj:`torch.LongTensor`), mask: :math:`(T, B)` or :math:`(T, B, S)`
        - rhos, rewards, done, truncated, next_value (:obj:`torch.FloatTensor`): :math:`(T, B)`
        - bootstrap_values (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`
    """
    with torch.no_grad():
        returns = upgo_returns(rewards, bootstrap_values, gamma, done, truncated, next_value)
        check_shape('upgo_loss', rhos=(rhos, rewards.shape))
        advantages = rhos * (returns - bootstrap_values[: rewards.shape[0]])
    metric = tb_cross_entropy(target_output, action, mask)
    check_shape('upgo_loss', action=(metric, rewards.shape))
    return -(advantages * metric).mean()


def tb_cross_entropy(logit: torch.Tensor, label: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """
    Overview:
        The log-probability of the labels, summed over the actions of a step, :math:`\\sum_s m_s \\log p_s(a_s)`: the
        *negative* cross-entropy (doi:10.1038/s41586-019-1724-z).
    Arguments:
        - mask (:obj:`torch.Tensor | None`): 0 where an action counts for nothing
    Shapes:
        - logit (:obj:`torch.FloatTensor`): :math:`(T, B, N)` or :math:`(T, B, S, N)`
        - label (:obj:`torch.LongTensor`), mask: :math:`(T, B)` or :math:`(T, B, S)`
        - result (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    if label.dim() not in (2, 3):
        raise ShapeError(f'tb_cross_entropy: label has shape {tuple(label.shape)}, expected (T, B) or (T, B, S)')
    check_shape('tb_cross_entropy', mask=(mask, label.shape))
    logp = log_prob(logit, label)
    if mask is not None:
        logp = logp * mask
    return logp.sum(2) if label.dim() == 3 else logp
