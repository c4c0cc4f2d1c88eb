"""TD errors of several discrete heads at once."""

from collections.abc import Callable
from typing import Any

import torch

from nervex.rl_utils.td.loss import TDLoss
from nervex.rl_utils.td.q import q_nstep_td_error


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
