"""Generalized advantage estimation."""

from collections import namedtuple

import torch

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.bootstrap import successors
from nervex.rl_utils.scan import reverse_scan

gae_data = namedtuple('gae_data', ['value', 'reward', 'done', 'truncated', 'next_value'], defaults=(None, None, None))


@hpc_wrapper()
def gae(data: gae_data, gamma: float = 0.99, lambda_: float = 0.97) -> torch.Tensor:
    """
    Overview:
        Generalized advantage estimation, :math:`A_t = \\delta_t + \\gamma \\lambda (1 - d_t) A_{t+1}` with
        :math:`\\delta_t = r_t + \\gamma (1 - terminated_t) V_{t+1} - V_t` (arXiv:1506.02438). Episodes may end
        anywhere inside.
    Arguments:
        - data (:obj:`gae_data`): ``value`` and ``reward``; optional: ``done`` (the episode ended after this step, for
          either reason), ``truncated`` (it ended by a time limit only: the step bootstraps, the recursion is cut all
          the same) and ``next_value``, the value of the observation that the step itself led to, which ``truncated``
          needs
        - gamma (:obj:`float`): discount factor in [0, 1]
        - lambda_ (:obj:`float`): 0 is the one-step error, 1 the full return minus the value
    Returns:
        - adv (:obj:`torch.Tensor`): the advantages; returns are ``adv + value`` of these raw advantages
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; :math:`(T, B)` is enough when ``next_value`` is given
        - reward, done, truncated, next_value, adv (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    value, reward, done, truncated, next_value = data
    value, next_value, bootstrap, trace = successors('gae', value, reward, done, truncated, next_value)
    if bootstrap is None:
        delta = torch.add(reward - value, next_value, alpha=gamma)
    else:
        delta = torch.addcmul(reward - value, next_value, bootstrap, value=gamma)
    return reverse_scan(gamma * lambda_ if trace is None else trace * (gamma * lambda_), delta)
