"""The numba versions of the recursions, behind the signatures of rl_utils: for float tensors on the CPU."""

from typing import Any

import numpy as np
import torch

from nervex.hpc_rl import kernels as compiled
from nervex.hpc_rl.addressed import addressed
from nervex.hpc_rl.tracing import is_traced

kernels: Any = compiled  # numba's own types do not describe a call
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_FLAG = np.dtype(np.bool_)


def reverse_scan(a: torch.Tensor | float, b: torch.Tensor, init: torch.Tensor | None = None) -> torch.Tensor:
    """
    Overview:
        :func:`nervex.rl_utils.reverse_scan` without its gradient, which the caller wraps around it.
    Shapes:
        - a, b, result (:obj:`torch.FloatTensor`): :math:`(T, *)`
        - init (:obj:`torch.FloatTensor`): :math:`(*)`
    """
    if not b.is_cpu or b.dtype not in (torch.float32, torch.float64) or is_traced(b):
        return NotImplemented
    terms = _numpy(b)
    steps, width = terms.shape[0], terms[0].size
    result = np.empty_like(terms)
    terms, y = terms.reshape(steps, width), result.reshape(steps, width)
    start = None if init is None else _numpy(init).reshape(width)
    if isinstance(a, torch.Tensor):
        kernels.scan(_numpy(a).reshape(steps, width), terms, start, y)
    else:
        kernels.scan_constant(float(a), terms, start, y)
    return torch.from_numpy(result)


def gae(data: Any, gamma: float = 0.99, lambda_: float = 0.97) -> torch.Tensor:
    """
    Overview:
        :func:`nervex.rl_utils.gae` as one kernel.
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; everything else :math:`(T, B)`
    """
    value, reward, done, truncated, next_value = data
    if is_traced(reward):
        return NotImplemented
    if (by_address := addressed(value, reward, done, truncated, next_value)) is not None:
        result = np.empty(reward.shape, by_address.number)
        ends = done.data_ptr()
        by_address.gae(value.data_ptr(), reward.data_ptr(), ends, 1.0 * gamma, 1.0 * gamma * lambda_, result)
        return torch.from_numpy(result)
    fields = _rollout(value, reward, done, truncated, next_value)
    if fields is None:
        return NotImplemented
    result = np.empty_like(fields[1])
    kernels.gae(*fields, float(gamma), float(gamma * lambda_), result)
    return _tensor(result, data.reward)


def rollout_nstep_return(data: Any, gamma: float, nstep: int) -> torch.Tensor:
    """
    Overview:
        :func:`nervex.rl_utils.rollout_nstep_return` as one kernel.
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; everything else :math:`(T, B)`
    """
    value, reward, done, truncated, next_value = data
    if nstep < 1 or is_traced(reward):
        return NotImplemented
    if (by_address := addressed(value, reward, done, truncated, next_value)) is not None:
        result = np.empty(reward.shape, by_address.number)
        by_address.rollout_nstep(value.data_ptr(), reward.data_ptr(), done.data_ptr(), 1.0 * gamma, nstep, result)
        return torch.from_numpy(result)
    fields = _rollout(value, reward, done, truncated, next_value)
    if fields is None:
        return NotImplemented
    result = np.empty_like(fields[1])
    kernels.rollout_nstep(*fields, float(gamma), nstep, result)
    return _tensor(result, data.reward)


def vtrace_targets(
    data: Any,
    gamma: float = 0.99,
    lambda_: float = 0.95,
    rho_clip_ratio: float = 1.0,
    c_clip_ratio: float = 1.0,
    rho_pg_clip_ratio: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Overview:
        :func:`nervex.rl_utils.vtrace_targets` as one kernel.
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; everything else :math:`(T, B)`
    """
    log_rho, value, reward, done, truncated, next_value = data
    if is_traced(reward) or not log_rho.is_cpu or (log_rho.requires_grad and torch.is_grad_enabled()):
        return NotImplemented
    clips = 1.0 * rho_clip_ratio, 1.0 * c_clip_ratio, 1.0 * rho_pg_clip_ratio  # ints would be compiled for once more
    factors = 1.0 * gamma, 1.0 * gamma * lambda_
    by_address = addressed(value, reward, done, truncated, next_value)
    if by_address is not None and log_rho.dtype is reward.dtype and log_rho.shape == reward.shape:
        ratio = _numpy(log_rho)
        return_, adv = np.empty_like(ratio), np.empty_like(ratio)
        addresses = value.data_ptr(), reward.data_ptr(), done.data_ptr()
        by_address.vtrace(np.exp(ratio), *addresses, *factors, *clips, return_, adv)
        return torch.from_numpy(return_), torch.from_numpy(adv)
    fields = _rollout(value, reward, done, truncated, next_value)
    if fields is None:
        return NotImplemented
    ratio, rewards = _numpy(log_rho), fields[1]
    if ratio.dtype != rewards.dtype or log_rho.shape != reward.shape:
        return NotImplemented
    return_, adv = np.empty_like(rewards), np.empty_like(rewards)
    kernels.vtrace(np.exp(ratio).reshape(rewards.shape), *fields, *factors, *clips, return_, adv)
    return _tensor(return_, reward), _tensor(adv, reward)


def _rollout(
    value: torch.Tensor,
    reward: torch.Tensor,
    done: torch.Tensor | None,
    truncated: torch.Tensor | None,
    next_value: torch.Tensor | None,
) -> list[Any] | None:
    """The fields as arrays (T, B); None for what is not made for a kernel, or wrong: the ordinary way explains it."""
    learning = torch.is_grad_enabled()
    arrays: list[Any] = []
    for field in (value, reward, done, truncated, next_value):
        if field is None:
            arrays.append(None)
        elif not getattr(field, 'is_cpu', False) or (learning and field.requires_grad):
            return None
        else:
            arrays.append(_numpy(field))
    values, rewards, ends, cuts, following = arrays
    dtype, shape = rewards.dtype, rewards.shape
    longer = values.shape[0] - shape[0]
    if dtype not in _FLOATS or values.dtype != dtype or not rewards.size or values.shape[1:] != shape[1:]:
        return None
    if longer != 1 and (longer or following is None):
        return None
    if ends is not None and (ends.shape != shape or (ends.dtype != _FLAG and ends.dtype != dtype)):
        return None
    if following is not None and (following.shape != shape or following.dtype != dtype):
        return None
    if cuts is not None and (ends is None or following is None or cuts.shape != shape or cuts.dtype != ends.dtype):
        return None
    if len(shape) == 2:
        return arrays
    width = rewards[0].size
    return [None if array is None else array.reshape(-1, width) for array in arrays]


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    array = tensor.detach().numpy() if tensor.requires_grad else tensor.numpy()
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _tensor(result: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    tensor = torch.from_numpy(result)
    return tensor if result.ndim == like.dim() else tensor.reshape(like.shape)


#: what replaces which operator
OPERATORS = {
    'reverse_scan': reverse_scan,
    'gae': gae,
    'rollout_nstep_return': rollout_nstep_return,
    'vtrace_targets': vtrace_targets,
}
