"""What a policy needs to work with one action head or several, with or without action masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from nervex.rl_utils import TDLoss, multi_discrete_td_error

Heads = Any  #: a tensor, or a list with one tensor for each head


def model_input(obs: Any, heads: Sequence[int] | None = None) -> dict[str, Any]:
    """
    Overview:
        The model's input for an observation. An ``action_mask`` inside a dict observation (1 is legal) is not for the
        network: it goes beside the rest, and a rest of one part stands for itself.
    Arguments:
        - obs (:obj:`torch.Tensor | np.ndarray | dict`): a block of observations
        - heads (:obj:`Sequence[int] | None`): actions of each head, for a mask that holds all heads side by side
    Returns:
        - data (:obj:`dict`): ``obs``, and ``action_mask`` (a list for several heads) where the observation has one
    """
    if not isinstance(obs, dict) or 'action_mask' not in obs:
        return {'obs': obs}
    rest = {key: value for key, value in obs.items() if key != 'action_mask'}
    mask = obs['action_mask']
    if isinstance(mask, dict):
        mask = list(mask.values())
    elif heads is not None and len(heads) > 1:
        ends = np.cumsum(heads).tolist()
        mask = [mask[..., end - size : end] for size, end in zip(heads, ends)]
    return {'obs': next(iter(rest.values())) if len(rest) == 1 else rest, 'action_mask': mask}


def joined(action: Any) -> Any:
    """Actions of several heads as one tensor or array, heads last; a single head stays as it is."""
    if not isinstance(action, (list, tuple)):
        return action
    return torch.stack(list(action), dim=-1) if isinstance(action[0], torch.Tensor) else np.stack(action, axis=-1)


def legal(logit: Heads, mask: Heads | None) -> Heads:
    """
    Overview:
        Logits with illegal actions at minus infinity, on memory of their own. A row without any legal action, as the
        state after an episode's end may be, stays as it is, so that nothing computed from it is NaN.
    """
    if mask is None:
        return logit
    if isinstance(logit, torch.Tensor):
        return logit.masked_fill((mask == 0) & (mask != 0).any(-1, keepdim=True), float('-inf'))
    return [legal(head, head_mask) for head, head_mask in zip(logit, mask)]


def greedy(logit: Heads, mask: Heads | None = None) -> Heads:
    """The legal action with the largest logit, for each head."""
    if isinstance(logit, torch.Tensor):
        return legal(logit, mask).argmax(-1)
    return [head.argmax(-1) for head in legal(logit, mask)]


def over_heads(td_error: Callable[..., TDLoss], data: Any, gamma: float, **kwargs: Any) -> TDLoss:
    """``td_error`` of one head, or the mean over several: then the value fields of ``data`` are lists."""
    if isinstance(data[0], list):
        return multi_discrete_td_error(data, gamma, td_error, **kwargs)
    return td_error(data, gamma, **kwargs)


def side_by_side(values: Heads) -> torch.Tensor:
    """The values of all heads in one tensor, for the log."""
    return values if isinstance(values, torch.Tensor) else torch.cat(values, dim=-1)
