"""Returns of every step of a rollout: of n steps, and of all step lengths, TD(lambda)."""

from collections import namedtuple

import torch
import torch.nn.functional as F

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.checks import check_shape, weighted_mean
from nervex.rl_utils.gae import successors
from nervex.rl_utils.scan import reverse_scan

rollout_nstep_data = namedtuple(
    'rollout_nstep_data', ['value', 'reward', 'done', 'truncated', 'next_value'], defaults=(None, None, None)
)
td_lambda_data = namedtuple(
    'td_lambda_data', ['value', 'reward', 'weight', 'done', 'truncated', 'next_value'], defaults=(None, None, None)
)
Factor = torch.Tensor | float


@hpc_wrapper()
def rollout_nstep_return(data: rollout_nstep_data, gamma: float, nstep: int) -> torch.Tensor:
    """
    Overview:
        :math:`G_t = \\sum_{k<m} \\gamma^k r_{t+k} + \\gamma^m V_{t+m}`, where m is n, or less where the episode or
        the rollout ends before. Asynchronous Methods for Deep Reinforcement Learning (arXiv:1602.01783).
    Arguments:
        - data (:obj:`rollout_nstep_data`): fields as in :func:`nervex.rl_utils.gae`
        - gamma (:obj:`float`): discount factor in [0, 1]
        - nstep (:obj:`int`): number of rewards, at least 1
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; :math:`(T, B)` is enough when ``next_value`` is given
        - reward, done, truncated, next_value, result (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    if nstep < 1:
        raise ValueError(f'rollout_nstep_return: nstep must be at least 1, got {nstep}')
    value, reward, done, truncated, next_value = data
    where = 'rollout_nstep_return'
    _, following, bootstrap, trace = successors(where, value, reward, done, truncated, next_value)
    one_step = torch.add(reward, following if bootstrap is None else bootstrap * following, alpha=gamma)
    steps = reward.shape[0]
    result = one_step
    for _ in range(min(nstep, steps) - 1):
        longer = torch.add(reward[:-1], result[1:], alpha=gamma)
        if trace is not None:
            longer = torch.where(trace[:-1] > 0, longer, one_step[:-1])
        result = torch.cat([longer, one_step[-1:]])
    return result


@hpc_wrapper()
def td_lambda_error(data: td_lambda_data, gamma: float = 0.9, lambda_: float = 0.8) -> torch.Tensor:
    """
    Overview:
        Half the weighted mean squared difference of values and their TD(lambda) returns, :math:`\\frac{1}{2} mean(w
        (G_t - V_t)^2)` with :math:`G_t = r_t + \\gamma ((1 - \\lambda) V_{t+1} + \\lambda G_{t+1})`. Sutton and Barto,
        Reinforcement Learning: An Introduction, chapter 12.
    Arguments:
        - data (:obj:`td_lambda_data`): value, reward, weight (may be None); optional done, truncated, next_value as in
          :func:`nervex.rl_utils.gae`
        - gamma (:obj:`float`): discount factor in [0, 1]
        - lambda_ (:obj:`float`): 0 is the one-step target, 1 the full return
    Returns:
        - loss (:obj:`torch.Tensor`): 0-dim
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`
        - reward, weight, done, truncated, next_value (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    value, reward, weight, done, truncated, next_value = data
    with torch.no_grad():
        target = generalized_lambda_returns(value, reward, gamma, lambda_, done, truncated, next_value)
    check_shape('td_lambda_error', weight=(weight, reward.shape))
    return 0.5 * weighted_mean(F.mse_loss(value[: reward.shape[0]], target, reduction='none'), weight)


def generalized_lambda_returns(
    bootstrap_values: torch.Tensor,
    rewards: torch.Tensor,
    gammas: Factor,
    lambda_: Factor,
    done: torch.Tensor | None = None,
    truncated: torch.Tensor | None = None,
    next_value: torch.Tensor | None = None,
) -> torch.Tensor:
    """
    Overview:
        :math:`G_t = r_t + \\gamma_t ((1 - \\lambda_t) V_{t+1} + \\lambda_t G_{t+1})`, with :math:`G_T = V_T`. Sutton
        and Barto, Reinforcement Learning: An Introduction, chapter 12.
    Arguments:
        - bootstrap_values (:obj:`torch.Tensor`): values of all observations, the one after the last step included
        - rewards (:obj:`torch.Tensor`): one for each step
        - gammas, lambda_ (:obj:`torch.Tensor | float`): constants, or one for each step
        - done, truncated, next_value (:obj:`torch.Tensor | None`): as in :func:`nervex.rl_utils.gae`
    Shapes:
        - bootstrap_values (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`
        - rewards, gammas, lambda_, done, truncated, next_value, result (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    where = 'generalized_lambda_returns'
    _, following, bootstrap, trace = successors(where, bootstrap_values, rewards, done, truncated, next_value)
    if bootstrap is not None and trace is not None:
        gammas, lambda_ = bootstrap * gammas, trace * lambda_
    return multistep_forward_view(following, rewards, gammas, lambda_)


def multistep_forward_view(
    bootstrap_values: torch.Tensor, rewards: torch.Tensor, gammas: Factor, lambda_: Factor
) -> torch.Tensor:
    """
    Overview:
        :func:`generalized_lambda_returns` from the values that follow each step,
        :math:`G_t = r_t + \\gamma_t ((1 - \\lambda_t) V'_t + \\lambda_t G_{t+1})`. Sutton and Barto, Reinforcement
        Learning: An Introduction, chapter 12.
    Shapes:
        - bootstrap_values, rewards, gammas, lambda_, result (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    check_shape('multistep_forward_view', bootstrap_values=(bootstrap_values, rewards.shape))
    trace = gammas * lambda_
    return reverse_scan(trace, rewards + (gammas - trace) * bootstrap_values, bootstrap_values[-1])
