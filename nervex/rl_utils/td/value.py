"""Temporal-difference errors of state values."""

from collections import namedtuple

from nervex.rl_utils.checks import check_rank, check_shape
from nervex.rl_utils.td.loss import Criterion, TDLoss, reduce_td, squared_error
from nervex.rl_utils.td.nstep import nstep_target

v_1step_td_data = namedtuple('v_1step_td_data', ['v', 'next_v', 'reward', 'done', 'weight'])
v_nstep_td_data = namedtuple(
    'v_nstep_td_data', ['v', 'next_n_v', 'reward', 'done', 'weight', 'value_gamma'], defaults=(None,)
)


def v_1step_td_error(data: v_1step_td_data, gamma: float, criterion: Criterion = squared_error) -> TDLoss:
    """
    Overview:
        One-step TD error of state values, or of the values of taken actions as in DDPG (arXiv:1509.02971), TD3 and
        QMIX: :math:`mean(w (r + \\gamma (1 - d) V' - V)^2)`.
    Arguments:
        - data (:obj:`v_1step_td_data`): fields as below; ``done`` may be bool or float, ``done`` and ``weight`` may
          be None
        - gamma (:obj:`float`): discount factor in [0, 1]
        - criterion (:obj:`Criterion`): error of value and target, one per sample
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean error, 0-dim; signed error target - v per sample, detached)
    Shapes:
        - v, next_v, reward, done, weight, td_error_per_sample (:obj:`torch.FloatTensor`): one shape, usually
          :math:`(B, )`
    """
    v, next_v, reward, done, weight = data
    shape, where = v.shape, 'v_1step_td_error'
    check_shape(where, next_v=(next_v, shape), reward=(reward, shape), done=(done, shape), weight=(weight, shape))
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
        - data (:obj:`v_nstep_td_data`): fields as below; ``done``, ``weight`` and ``value_gamma`` may be None
        - gamma (:obj:`float`): discount factor in [0, 1]
        - nstep (:obj:`int`): number of rewards
        - criterion (:obj:`Criterion`): error of value and target, one per sample
    Returns:
        - loss (:obj:`TDLoss`): the pair (weighted mean error, 0-dim; signed error target - v per sample, detached)
    Shapes:
        - v, next_n_v, done, weight, td_error_per_sample (:obj:`torch.FloatTensor`): :math:`(B, )`
        - reward (:obj:`torch.FloatTensor`): :math:`(nstep, B)`, time first; :math:`(B, )` is accepted when nstep is 1
        - value_gamma (:obj:`torch.FloatTensor`): :math:`(B, )`, replaces :math:`\\gamma^n` where fewer steps were taken
    """
    v, next_v, reward, done, weight, value_gamma = data
    where = 'v_nstep_td_error'
    check_rank(where, 'v', v, 1, '(B, )')
    check_shape(where, next_n_v=(next_v, v.shape), weight=(weight, v.shape))
    target = nstep_target(reward, next_v.detach(), done, gamma, nstep, value_gamma, where=where)
    return reduce_td(v, target, weight, criterion, where)
