"""Heads, rows and action masks, shared by the sampling plugins."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from nervex.utils.errors import UnknownNameError

_FEW = 32  # rows up to which NumPy chooses faster than torch


def row_ids(data_id: Any) -> list[int]:
    """Ids of rows, given as a list, an array, a tensor or one int, as a list."""
    if isinstance(data_id, int):
        return [data_id]
    return [int(i) for i in (data_id.tolist() if hasattr(data_id, 'tolist') else data_id)]


def per_head(output: Any, choose: Callable[..., Any], few: Callable[..., Any], *args: Any) -> Any:
    """
    Overview:
        Choose an action for each action head of a model's output.
    Arguments:
        - output (:obj:`dict`): ``logit`` a tensor (one head) or a list of tensors; ``action_mask`` likewise, optional.
          Arrays may stand for tensors
        - choose (:obj:`Callable`): ``choose(logit, mask, *args) -> action``, for tensors of any shape on any device
        - few (:obj:`Callable`): ``few(array, *args) -> array`` does the same for an array of a few rows without mask,
          for which NumPy is faster
    Returns:
        - action (:obj:`torch.LongTensor | list`): a list if the logits are a list, arrays for arrays
    """
    try:
        logit = output['logit']
    except (KeyError, TypeError, IndexError) as error:
        got = sorted(output) if isinstance(output, dict) else type(output).__name__
        raise UnknownNameError(f"sampling an action needs a model output dict with 'logit', got {got}") from error
    mask = output.get('action_mask')
    if isinstance(logit, (Tensor, np.ndarray)):
        if mask is not None and not isinstance(mask, (Tensor, np.ndarray)):
            raise ValueError(f'one logit tensor needs one action_mask tensor, got a {type(mask).__name__}')
        return _of_head(logit, mask, choose, few, args)
    if not isinstance(logit, list):
        raise TypeError(
            f'logit is one tensor or a list of them, got a {type(logit).__name__}: a pair (mu, sigma) '
            'belongs to continuous actions, which these plugins do not sample'
        )
    masks = [None] * len(logit) if mask is None else mask
    if isinstance(masks, (Tensor, np.ndarray)) or len(masks) != len(logit):
        raise ValueError(f'{len(logit)} action heads need a list of {len(logit)} action masks (None: all legal)')
    return [_of_head(head, head_mask, choose, few, args) for head, head_mask in zip(logit, masks)]


def _of_head(logit: Any, mask: Any, choose: Callable[..., Any], few: Callable[..., Any], args: tuple) -> Any:
    if isinstance(logit, Tensor):
        few_rows = mask is None and logit.is_cpu and logit.dim() == 2 and len(logit) <= _FEW
        # what records tensor operations does not see those of NumPy and would freeze their results
        if few_rows and logit.dtype is torch.float32 and not is_in_torch_dispatch_mode():
            return torch.from_numpy(few(logit.detach().numpy(), *args))
        return choose(logit, torch.as_tensor(mask) if isinstance(mask, np.ndarray) else mask, *args)
    if mask is None and logit.ndim == 2 and len(logit) <= _FEW:
        return few(logit, *args)
    return choose(torch.from_numpy(logit), None if mask is None else torch.as_tensor(mask), *args).numpy()


def legal_logit(logit: Tensor, mask: Tensor | None) -> Tensor:
    """A copy of the logits with illegal actions (mask 0) at minus infinity; the stored logits stay as they are."""
    if mask is None:
        return logit
    if mask.shape[-1] != logit.shape[-1]:
        raise ValueError(f'action_mask {tuple(mask.shape)} does not fit logit {tuple(logit.shape)}: last dims differ')
    return logit.masked_fill(mask == 0, float('-inf'))


def rows_of(value: Any, logit: Tensor) -> Tensor:
    """
    Overview:
        A per-row probability (an epsilon for each environment) as a tensor that broadcasts over the rows of ``logit``.
        It may have all leading dims of the logits, or only the first ones (one epsilon for all agents of an env).
    """
    lead = logit.shape[:-1]
    tensor = torch.as_tensor(value, dtype=torch.float64)
    if tensor.device.type == 'cpu' and tensor.numel() and not 0.0 <= tensor.min() <= tensor.max() <= 1.0:
        raise ValueError(f'each row needs a probability between 0 and 1, got {tensor.tolist()}')
    tensor = tensor.to(logit.device)
    if tensor.shape != lead[: tensor.dim()]:
        raise ValueError(f'a per-row value of shape {tuple(tensor.shape)} does not fit rows of shape {tuple(lead)}')
    return tensor.reshape(tensor.shape + (1,) * (len(lead) - tensor.dim())).expand(lead)
