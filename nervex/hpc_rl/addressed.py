"""
The kernels of rollouts for tensors by their addresses. A torch tensor tells its address in a tenth of the time that it
takes to make a NumPy array of it, and for small rollouts these arrays were most of the work.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numba import carray as numba_carray
from numba import njit, types
from numba.extending import intrinsic

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
