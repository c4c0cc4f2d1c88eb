"""
The one recursion of the package, ``y[t] = b[t] + a[t] * y[t + 1]``, solved in log2(T) steps.

Two neighbouring steps compose into one, ``y[t] = (b[t] + a[t] b[t+1]) + a[t] a[t+1] y[t+2]``, so a problem of T steps
becomes one of T / 2 for the even steps, and the odd steps follow from those. All steps of one level are computed
together: about 3 T multiplications in all and no division, so ``a`` may be 0 (an episode's end) anywhere.
"""

from typing import Any

import numpy as np
import torch

from nervex.hpc_rl.wrapper import hpc_wrapper, is_traced
from nervex.rl_utils.checks import ShapeError, check_tensor

_ROWS = 8  # at most so many steps are cheaper one by one
_NUMPY_DTYPES = (torch.float32, torch.float64)


def reverse_scan(a: torch.Tensor | float, b: torch.Tensor, init: torch.Tensor | float | None = None) -> torch.Tensor:
    """
    Overview:
        Solve :math:`y_t = b_t + a_t y_{t+1}` for t = T-1 .. 0 with ``y[T] = init``. Differentiable in every tensor
        argument. Blelloch, Prefix Sums and Their Applications (CMU-CS-90-190).
    Arguments:
        - a (:obj:`torch.Tensor | float`): factors of the next step, broadcastable to the shape of ``b``
        - b (:obj:`torch.Tensor`): what each step adds
        - init (:obj:`torch.Tensor | float | None`): the value after the last step; None is 0
    Returns:
        - y (:obj:`torch.Tensor`): the solution, with shape and dtype of ``b``
    Shapes:
        - a, b, y (:obj:`torch.FloatTensor`): :math:`(T, *)`, time first
        - init (:obj:`torch.FloatTensor`): :math:`(*)`
    """
    check_tensor('reverse_scan', 'b', b, '(T, *)')
    if b.dim() == 0 or not b.is_floating_point():
        raise ValueError(f'reverse_scan: b must be a float tensor (T, *), got {b.dtype} of shape {tuple(b.shape)}')
    if b.shape[0] == 0:
        return b.clone()
    if isinstance(a, torch.Tensor):
        a = a if a.dtype is b.dtype else a.to(b.dtype)
        a = a if a.shape == b.shape else _fitted('a', a, b.shape)
    if isinstance(init, torch.Tensor):
        init = _fitted('init', init if init.dtype is b.dtype else init.to(b.dtype), b.shape[1:])
    elif init is not None:
        init = b.new_full(b.shape[1:], init)
    if torch.is_grad_enabled() and (b.requires_grad or _learns(a) or _learns(init)):
        return _solve_torch(a, b, init)  # whose operators autograd knows
    return _solve(a, b, init)


def _fitted(name: str, argument: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    try:
        return argument.expand(shape)
    except RuntimeError as error:
        got, expected = tuple(argument.shape), tuple(shape)
        raise ShapeError(f'reverse_scan: {name} has shape {got}, which does not broadcast to {expected}') from error


def _learns(argument: Any) -> bool:
    return isinstance(argument, torch.Tensor) and argument.requires_grad


@hpc_wrapper(name='reverse_scan')
def _solve(a: Any, b: torch.Tensor, init: torch.Tensor | None) -> torch.Tensor:
    if b.device.type == 'cpu' and b.dtype in _NUMPY_DTYPES and not is_traced(b):
        terms = b.detach().numpy()
        factors = a.detach().numpy() if isinstance(a, torch.Tensor) else a
        if init is not None:
            terms = terms.copy()
            terms[-1] += (factors[-1] if isinstance(a, torch.Tensor) else factors) * init.detach().numpy()
        y = np.empty_like(terms)
        if terms.ndim == 1:  # single numbers have no memory of their own to write into: one column
            _solve_numpy(factors[:, None] if isinstance(a, torch.Tensor) else a, terms[:, None], y[:, None])
        else:
            _solve_numpy(factors, terms, y)
        return torch.from_numpy(y)
    return _solve_torch(a, b, init)


def _solve_numpy(a: Any, b: np.ndarray, y: np.ndarray) -> None:
    steps = b.shape[0]
    scalar = not isinstance(a, np.ndarray)
    if steps <= _ROWS:
        added, solved = list(b), list(y)
        factors = [a] * steps if scalar else list(a)
        solved[-1][:] = added[-1]
        for t in range(steps - 2, -1, -1):
            np.multiply(solved[t + 1], factors[t], out=solved[t])
            np.add(solved[t], added[t], out=solved[t])
        return
    if steps % 2:
        _solve_numpy(a if scalar else a[1:], b[1:], y[1:])
        y[0] = b[0] + (a if scalar else a[0]) * y[1]
        return
    even_a, odd_a = (a, a) if scalar else (a[::2], a[1:-1:2])
    pair_b = even_a * b[1::2]
    pair_b += b[::2]
    _solve_numpy(a * a if scalar else even_a * a[1::2], pair_b, y[::2])
    odd_y = y[1:-1:2]
    np.multiply(y[2::2], odd_a, out=odd_y)
    odd_y += b[1:-1:2]
    y[-1] = b[-1]


def _solve_torch(a: Any, b: torch.Tensor, init: torch.Tensor | None = None) -> torch.Tensor:
    """The same sums in the same order as by NumPy, so that a recorded update equals the ordinary one bit for bit."""
    steps = b.shape[0]
    scalar = not isinstance(a, torch.Tensor)
    if init is not None:
        last = b[-1] + (a if scalar else a[-1]) * init
        b = torch.cat([b[:-1], last.unsqueeze(0)])
    if steps <= _ROWS:
        solved = [b[-1]]
        for t in range(steps - 2, -1, -1):
            solved.append(solved[-1] * (a if scalar else a[t]) + b[t])
        return torch.stack(solved[::-1])
    if steps % 2:
        rest = _solve_torch(a if scalar else a[1:], b[1:])
        first = b[0] + (a if scalar else a[0]) * rest[0]
        return torch.cat([first.unsqueeze(0), rest])
    even_a, odd_a = (a, a) if scalar else (a[::2], a[1:-1:2])
    even = _solve_torch(a * a if scalar else even_a * a[1::2], even_a * b[1::2] + b[::2])
    odd = torch.cat([even[1:] * odd_a + b[1:-1:2], b[-1:]])
    return torch.stack([even, odd], dim=1).reshape(b.shape)
