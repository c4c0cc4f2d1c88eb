"""Sums of n rewards and the value that follows them."""

from collections import namedtuple

import torch

from nervex.rl_utils.checks import ShapeError, check_rank, check_shape, check_tensor, not_done

nstep_return_data = namedtuple('nstep_return_data', ['reward', 'next_value', 'done'])


def discounted_sum(reward: torch.Tensor, gamma: float) -> torch.Tensor:
    """
    Overview:
        :math:`\\sum_k \\gamma^k r_k` over the first axis.
    Shapes:
        - reward (:obj:`torch.FloatTensor`): :math:`(nstep, *)`; the result has shape :math:`(*)`
    """
    total = reward[-1]
    for k in range(reward.shape[0] - 2, -1, -1):
        total = torch.add(reward[k], total, alpha=gamma)
    return total


def check_nstep_reward(where: str, reward: torch.Tensor, batch: int, nstep: int) -> torch.Tensor:
    """
    Overview:
        Rewards as :math:`(nstep, B)`. With ``nstep == 1`` rewards :math:`(B, )` are taken as one row.
    """
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
        - data (:obj:`nstep_return_data`): fields as below; ``done`` may be bool, float or None
        - gamma (:obj:`float`): discount factor in [0, 1]
        - nstep (:obj:`int`): number of rewards
        - value_gamma (:obj:`torch.Tensor | float | None`): replaces :math:`\\gamma^n` where fewer steps were taken
    Shapes:
        - reward (:obj:`torch.FloatTensor`): :math:`(nstep, B)`
        - next_value, done, value_gamma, result (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    reward, next_value, done = data
    check_rank('nstep_return', 'next_value', next_value, 1, '(B, )')
    return nstep_target(reward, next_value, done, gamma, nstep, value_gamma)
