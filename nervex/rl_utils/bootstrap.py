"""Which value follows each step of a rollout, and where the episodes end: shared by all recursions."""

import torch

from nervex.rl_utils.checks import ShapeError, check_alike, check_tensor, not_done

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
