"""The numba versions of the recursions, behind the signatures of rl_utils: for float tensors on the CPU."""
from collections import namedtuple

import numpy as np
import torch

from nervex.hpc_rl import kernels
from nervex.hpc_rl.tracing import is_traced

_FLOATS = {torch.float32: np.float32, torch.float64: np.float64}


def reverse_scan(a: torch.Tensor | float, b: torch.Tensor, init: torch.Tensor | None = None) -> torch.Tensor:
    """
    Overview:
        :func:`nervex.rl_utils.reverse_scan` without its gradient, which the caller wraps around it.
    Shapes:
        - a, b, result (:obj:`torch.FloatTensor`): :math:`(T, *)`
        - init (:obj:`torch.FloatTensor`): :math:`(*)`
    """
    if not b.is_cpu or b.dtype not in _FLOATS or is_traced(b):
        return NotImplemented
    result = np.empty(b.shape, _FLOATS[b.dtype])
    steps, width = b.shape[0], b[0].numel()
    terms, y = _numpy(b).reshape(steps, width), result.reshape(steps, width)
    start = None if init is None else _numpy(init).reshape(width)
    if isinstance(a, torch.Tensor):
        kernels.scan(_numpy(a).reshape(steps, width), terms, start, y)
    else:
        kernels.scan_constant(y.dtype.type(a), terms, start, y)
    return torch.from_numpy(result)


def gae(data: namedtuple, gamma: float = 0.99, lambda_: float = 0.97) -> torch.Tensor:
    """
    Overview:
        :func:`nervex.rl_utils.gae` as one kernel.
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; everything else :math:`(T, B)`
    """
    fields = _rollout(data.value, data.reward, data.done, data.truncated, data.next_value)
    if fields is None:
        return NotImplemented
    result = np.empty_like(fields[1])
    number = result.dtype.type
    kernels.gae(*fields, number(gamma), number(gamma * lambda_), result)
    return _tensor(result, data.reward)


def rollout_nstep_return(data: namedtuple, gamma: float, nstep: int) -> torch.Tensor:
    """
    Overview:
        :func:`nervex.rl_utils.rollout_nstep_return` as one kernel.
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; everything else :math:`(T, B)`
    """
    fields = _rollout(data.value, data.reward, data.done, data.truncated, data.next_value)
    if fields is None or nstep < 1:
        return NotImplemented
    result = np.empty_like(fields[1])
    kernels.rollout_nstep(*fields, result.dtype.type(gamma), nstep, result)
    return _tensor(result, data.reward)


def vtrace_targets(
    data: namedtuple, gamma: float = 0.99, lambda_: float = 0.95, rho_clip_ratio: float = 1.0,
    c_clip_ratio: float = 1.0, rho_pg_clip_ratio: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Overview:
        :func:`nervex.rl_utils.vtrace_targets` as one kernel.
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; everything else :math:`(T, B)`
    """
    log_rho, reward = data.log_rho, data.reward
    fields = _rollout(data.value, reward, data.done, data.truncated, data.next_value)
    if fields is None or log_rho.shape != reward.shape or log_rho.dtype is not reward.dtype or _learns(log_rho):
        return NotImplemented
    return_, adv = np.empty_like(fields[1]), np.empty_like(fields[1])
    number = return_.dtype.type
    factors = (gamma, gamma * lambda_, rho_clip_ratio, c_clip_ratio, rho_pg_clip_ratio)
    rho = _numpy(log_rho.detach().exp()).reshape(return_.shape)
    kernels.vtrace(rho, *fields, *(number(x) for x in factors), return_, adv)
    return _tensor(return_, reward), _tensor(adv, reward)


def _rollout(
    value: torch.Tensor, reward: torch.Tensor, done: torch.Tensor | None, truncated: torch.Tensor | None,
    next_value: torch.Tensor | None,
) -> list[np.ndarray | None] | None:
    """The fields as arrays (T, B); None for what is not made for a kernel, or wrong: the ordinary way explains it."""
    dtype, shape = reward.dtype, reward.shape
    if dtype not in _FLOATS or value.dtype is not dtype or is_traced(reward):
        return None
    if reward.dim() == 0 or reward.numel() == 0:
        return None
    if truncated is not None and (done is None or next_value is None or truncated.dtype is not done.dtype):
        return None
    if done is not None and not (done.dtype is torch.bool or done.dtype is dtype):
        return None
    if next_value is not None and next_value.dtype is not dtype:
        return None
    if value.shape[1:] != shape[1:] or value.shape[0] - shape[0] not in ((0, 1) if next_value is not None else (1, )):
        return None
    fields = (value, reward, done, truncated, next_value)
    for i, field in enumerate(fields):
        if field is not None and (not field.is_cpu or _learns(field) or (i > 1 and field.shape != shape)):
            return None
    if reward.dim() == 2:
        return [None if field is None else _numpy(field) for field in fields]
    width = reward[0].numel()
    return [None if field is None else _numpy(field).reshape(-1, width) for field in fields]


def _learns(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and torch.is_grad_enabled()


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach() if tensor.requires_grad else tensor
    return (tensor if tensor.is_contiguous() else tensor.contiguous()).numpy()


def _tensor(result: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    tensor = torch.from_numpy(result)
    return tensor if result.ndim == like.dim() else tensor.reshape(like.shape)


#: what replaces which operator
OPERATORS = {
    'reverse_scan': reverse_scan, 'gae': gae, 'rollout_nstep_return': rollout_nstep_return,
    'vtrace_targets': vtrace_targets,
}
