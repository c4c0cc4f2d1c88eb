"""Generalized advantage estimation, and what comes after each step of a rollout."""

from collections import namedtuple

import torch

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.checks import ShapeError, check_alike, check_tensor, not_done
from nervex.rl_utils.scan import reverse_scan

Rollout = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]


def successors(
    where: str,
    value: torch.Tensor,
    reward: torch.Tensor,
    done: torch.Tensor | None,
    truncated: torch.Tensor | None,
    next_value: torch.Tensor | None,
) -> Rollout:
    """
    Overview:
        Check the fields of a rollout and split them. A terminated step has no next value; a truncated step has one, but
        not that of the following row, which belongs to the next episode.
    Returns:
        - rollout (:obj:`tuple`): values, next values, the factor of the next value (0 where terminated), the factor
          of the recursion (0 where the episode ended); a factor is None where it would be 1 everywhere
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, *)`, or :math:`(T, *)` when ``next_value`` is given
        - everything else: :math:`(T, *)`
    """
    check_tensor(where, 'reward', reward, '(T, B)')
    check_tensor(where, 'value', value, '(T + 1, B)')
    if reward.dim() == 0 or not reward.is_floating_point():
        raise ShapeError(f'{where}: reward must be a float tensor (T, B), got {reward.dtype} {tuple(reward.shape)}')
    steps, shape = reward.shape[0], reward.shape
    check_alike(where, shape, done=done, truncated=truncated, next_value=next_value)
    lengths = (steps + 1,) if next_value is None else (steps, steps + 1)
    if value.shape[1:] != shape[1:] or value.shape[0] not in lengths:
        remedy = (
            ' or (T, B) beside next_value'
            if next_value is not None
            else '; append the value of the observation after the last step, or pass next_value (T, B)'
        )
        raise ShapeError(
            f'{where}: value has shape {tuple(value.shape)} for rewards (T, B) = {tuple(shape)}, '
            f'expected (T + 1, B) = {(steps + 1, *shape[1:])}{remedy}'
        )
    trace = not_done(done, reward)
    if truncated is not None and (next_value is None or done is None):
        raise ValueError(
            f'{where}: truncated needs done and next_value: a step that a time limit cut bootstraps from the value '
            'of its own final observation, and value[t + 1] is the first value of the next episode'
        )
    following = value[1:] if next_value is None else next_value
    bootstrap = trace
    if truncated is not None and done is not None and trace is not None:
        if done.dtype is torch.bool and truncated.dtype is torch.bool:
            bootstrap = (truncated | ~done).to(reward.dtype)
        else:
            bootstrap = torch.maximum(trace, truncated.to(reward.dtype))
    return value[:steps], following, bootstrap, trace


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
