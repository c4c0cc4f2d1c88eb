"""
The kernels of rollouts for tensors by their addresses. A torch tensor tells its address in a tenth of the time that it
takes to make a NumPy array of it, and for small rollouts these arrays were most of the work.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray as numba_carray
from numba import njit, types
from numba.extending import intrinsic

from nervex.hpc_rl import kernels as compiled

kernels: Any = compiled  # numba's own types do not describe a call
carray: Any = numba_carray
_NUMBERS = {torch.float32: np.float32, torch.float64: np.float64}
_FLAGS = {torch.bool: np.bool_, **_NUMBERS}
_compiled = njit(cache=True, nogil=True, error_model='numpy')


class Addressed(NamedTuple):
    """The kernels for one dtype; values (T + 1, B), rewards and ends (T, B) come as addresses of contiguous memory."""

    number: type
    gae: Callable[..., None]  # (values, rewards, ends, gamma, gamma lambda, result)
    rollout_nstep: Callable[..., None]  # (values, rewards, ends, gamma, steps, result)
    vtrace: Callable[..., None]  # (ratios, values, rewards, ends, gamma, gamma lambda, three bounds, results)


def _to_pointer(typing_context: Any, address: Any) -> tuple:
    """An address as what ``carray`` takes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), generate


_pointer: Any = intrinsic(_to_pointer)


@cache
def _kernels(number: type, flag: type) -> Addressed:
    @_compiled
    def arrays(value: int, reward: int, done: int, like: np.ndarray) -> tuple:
        steps, width = like.shape
        values = carray(_pointer(value), (steps + 1, width), number)
        return values, carray(_pointer(reward), like.shape, number), carray(_pointer(done), like.shape, flag)

    @_compiled
    def gae(value: int, reward: int, done: int, gamma: float, trace: float, adv: np.ndarray) -> None:
        kernels.gae(*arrays(value, reward, done, adv), None, None, gamma, trace, adv)

    @_compiled
    def rollout_nstep(value: int, reward: int, done: int, gamma: float, nstep: int, result: np.ndarray) -> None:
        kernels.rollout_nstep(*arrays(value, reward, done, result), None, None, gamma, nstep, result)

    @_compiled
    def vtrace(
        rho: np.ndarray,
        value: int,
        reward: int,
        done: int,
        gamma: float,
        trace: float,
        rho_max: float,
        c_max: float,
        pg_max: float,
        adv: np.ndarray,
        return_: np.ndarray,
    ) -> None:
        values, rewards, ends = arrays(value, reward, done, adv)
        kernels.vtrace(rho, values, rewards, ends, None, None, gamma, trace, rho_max, c_max, pg_max, adv, return_)

    return Addressed(number, gae, rollout_nstep, vtrace)


def addressed(
    value: torch.Tensor,
    reward: torch.Tensor,
    done: torch.Tensor | None,
    truncated: torch.Tensor | None,
    next_value: torch.Tensor | None,
) -> Addressed | None:
    """
    Overview:
        The kernels for a rollout of the usual kind: contiguous on the CPU, of one dtype, without gradients. None for
        any other, and for what is wrong in it.
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; everything else :math:`(T, B)`
    """
    if truncated is not None or next_value is not None or done is None:
        return None
    number, flag = _NUMBERS.get(reward.dtype), _FLAGS.get(done.dtype)
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
    return _kernels(number, flag)
