"""n-step returns of every step of a rollout."""

from collections import namedtuple

import torch

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.bootstrap import successors

rollout_nstep_data = namedtuple(
    'rollout_nstep_data', ['value', 'reward', 'done', 'truncated', 'next_value'], defaults=(None, None, None)
)


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
