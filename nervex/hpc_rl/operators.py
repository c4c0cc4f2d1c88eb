"""The numba versions of the recursions, behind the signatures of rl_utils: for float tensors on the CPU."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numba import carray as numba_carray
from numba import njit, types
from numba.extending import intrinsic

from nervex.hpc_rl import kernels as compiled
from nervex.hpc_rl.wrapper import is_traced

carray: Any = numba_carray
NUMBERS = {torch.float32: np.float32, torch.float64: np.float64}
_FLAGS = {torch.bool: np.bool_, **NUMBERS}
_compiled = njit(cache=True, nogil=True, error_model='numpy')


def _to_pointer(typing_context: Any, address: Any) -> tuple:
    """An address as what ``carray`` takes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), generate


_pointer: Any = intrinsic(_to_pointer)


@cache
def _by_address(kernel: Any, number: type, flag: type) -> Callable[..., None]:
    """A kernel for one dtype whose values (T + 1, B), rewards and ends (T, B) come as addresses of their memory."""

    @_compiled
    def run(value: int, reward: int, done: int, *arguments: Any) -> None:
        steps, width = arguments[-1].shape
        values = carray(_pointer(value), (steps + 1, width), number)
        rewards, ends = carray(_pointer(reward), (steps, width), number), carray(_pointer(done), (steps, width), flag)
        kernel(values, rewards, ends, None, None, *arguments)

    return run


def addressed(
    kernel: Any,
    value: torch.Tensor,
    reward: torch.Tensor,
    done: torch.Tensor | None,
    truncated: torch.Tensor | None,
    next_value: torch.Tensor | None,
) -> Callable[..., None] | None:
    """
    Overview:
        The kernel for a rollout of the usual kind: contiguous on the CPU, of one dtype, without gradients. None for
        any other, and for what is wrong in it.
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; everything else :math:`(T, B)`
    """
    if truncated is not None or next_value is not None or done is None:
        return None
    number, flag = NUMBERS.get(reward.dtype), _FLAGS.get(done.dtype)
    if number is None or value.dtype is not reward.dtype or (flag is not number and flag is not np.bool_):
        return None
    shape = reward.shape
    if len(shape) != 2 or done.shape != shape or value.shape != (shape[0] + 1, shape[1]) or 0 in shape:
        return None
    if not (reward.is_cpu and value.is_cpu and done.is_cpu):
        return None
    if not (reward.is_contiguous() and value.is_contiguous() and done.is_contiguous()):
        return None
    if (value.requires_grad or reward.requires_grad or done.requires_grad) and torch.is_grad_enabled():
        return None
    return _by_address(kernel, number, flag)


kernels: Any = compiled  # numba's own types do not describe a call
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


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
    factors = _numpy(a).reshape(steps, width) if isinstance(a, torch.Tensor) else np.full_like(terms, a)
    kernels.scan(factors, terms, start, y)
    return torch.from_numpy(result)


def gae(data: Any, gamma: float = 0.99, lambda_: float = 0.97) -> torch.Tensor:
    """:func:`nervex.rl_utils.gae` as one kernel."""
    return _run(kernels.gae, data, 1.0 * gamma, 1.0 * gamma * lambda_)


def rollout_nstep_return(data: Any, gamma: float, nstep: int) -> torch.Tensor:
    """:func:`nervex.rl_utils.rollout_nstep_return` as one kernel."""
    return NotImplemented if nstep < 1 else _run(kernels.rollout_nstep, data, 1.0 * gamma, nstep)


def vtrace_targets(
    data: Any,
    gamma: float = 0.99,
    lambda_: float = 0.95,
    rho_clip_ratio: float = 1.0,
    c_clip_ratio: float = 1.0,
    rho_pg_clip_ratio: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """:func:`nervex.rl_utils.vtrace_targets` as one kernel."""
    log_rho, reward = data.log_rho, data.reward
    if not log_rho.is_cpu or (log_rho.requires_grad and torch.is_grad_enabled()):
        return NotImplemented
    if log_rho.dtype is not reward.dtype or log_rho.shape != reward.shape:
        return NotImplemented
    ratio = np.exp(_numpy(log_rho))
    adv = np.empty_like(ratio)
    clips = 1.0 * rho_clip_ratio, 1.0 * c_clip_ratio, 1.0 * rho_pg_clip_ratio  # ints would be compiled for once more
    return_ = _run(kernels.vtrace, data[1:], ratio, 1.0 * gamma, 1.0 * gamma * lambda_, *clips, adv)
    return return_ if return_ is NotImplemented else (return_, torch.from_numpy(adv))


def _run(kernel: Any, rollout: Any, *arguments: Any) -> Any:
    """A kernel's result for a rollout, value (T + 1, B), everything else (T, B): by addresses, or by arrays."""
    value, reward, done, truncated, next_value = rollout
    if is_traced(reward):
        return NotImplemented
    by_address = addressed(kernel, value, reward, done, truncated, next_value)
    if by_address is not None:
        result = np.empty(reward.shape, NUMBERS[reward.dtype])
        by_address(value.data_ptr(), reward.data_ptr(), done.data_ptr(), *arguments, result)
        return torch.from_numpy(result)
    fields = _arrays(value, reward, done, truncated, next_value)
    if fields is None:
        return NotImplemented
    result = np.empty(reward.shape, fields[1].dtype)
    kernel(*fields, *[x.reshape(len(x), -1) if isinstance(x, np.ndarray) else x for x in (*arguments, result)])
    return torch.from_numpy(result)


def _arrays(
    value: torch.Tensor,
    reward: torch.Tensor,
    done: torch.Tensor | None,
    truncated: torch.Tensor | None,
    next_value: torch.Tensor | None,
) -> list[Any] | None:
    """The fields as arrays (T, B); None for what is not made for a kernel, or wrong: the ordinary way explains it."""
    learning, shape = torch.is_grad_enabled(), reward.shape
    fields = value, reward, done, truncated, next_value
    if not all(x is None or (getattr(x, 'is_cpu', False) and not (learning and x.requires_grad)) for x in fields):
        return None
    arrays: list[Any] = [None if field is None else _numpy(field) for field in fields]
    values, rewards, ends, cuts, following = arrays
    longer = len(values) - shape[0]
    if rewards.dtype not in _FLOATS or not rewards.size or values.shape[1:] != shape[1:]:
        return None
    if longer != 1 and (longer or following is None):
        return None
    if any(x is not None and x.shape != shape for x in (ends, cuts, following)):
        return None
    if any(x is not None and x.dtype != rewards.dtype for x in (values, following)):
        return None
    if ends is not None and ends.dtype not in (np.dtype(np.bool_), rewards.dtype):
        return None
    if cuts is not None and (ends is None or following is None or cuts.dtype != ends.dtype):
        return None
    return arrays if len(shape) == 2 else [x if x is None else x.reshape(len(x), -1) for x in arrays]


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    array = tensor.detach().numpy() if tensor.requires_grad else tensor.numpy()
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


#: what replaces which operator
OPERATORS = {
    'reverse_scan': reverse_scan,
    'gae': gae,
    'rollout_nstep_return': rollout_nstep_return,
    'vtrace_targets': vtrace_targets,
}
