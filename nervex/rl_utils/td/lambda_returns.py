"""Returns that mix all step lengths, TD(lambda)."""

from collections import namedtuple

import torch
import torch.nn.functional as F

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.bootstrap import successors
from nervex.rl_utils.checks import check_shape, weighted_mean
from nervex.rl_utils.scan import reverse_scan

td_lambda_data = namedtuple(
    'td_lambda_data', ['value', 'reward', 'weight', 'done', 'truncated', 'next_value'], defaults=(None, None, None)
)
Factor = torch.Tensor | float


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
