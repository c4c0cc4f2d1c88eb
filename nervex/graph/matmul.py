"""oneDNN for wide float32 layers on the CPU: whether it pays on this machine, and the switch around an update."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache

import torch

WORTH_TESTING = 2_000_000  # multiply-adds of one layer; below that oneDNN's fee for each call is never earned back
_GAIN = 0.9  # the time of all layers together must fall to this share
_ERROR = 1e-5  # largest error, relative to the largest result: float32 stays below 1e-6, bfloat16 is at 1e-3
_set_precision = getattr(torch._C, '_set_float32_matmul_precision', torch.set_float32_matmul_precision)


class FastMatmul:
    """
    Overview:
        A context in which torch may multiply float32 matrices by oneDNN, where that is faster and as exact for the
        layers it is made for; elsewhere it does nothing. Torch knows one such setting for the whole process, so the
        context is held during an update only: single rows, as an acting policy has them, get slower by it.
    Arguments:
        - params (:obj:`Iterable[torch.Tensor]`): weights; the matrices among them are the layers
        - rows (:obj:`int`): rows of a batch
    """

    __slots__ = ('enabled',)

    def __init__(self, params: Iterable[torch.Tensor], rows: int) -> None:
        params = list(params)
        plain = all(p.device.type == 'cpu' and p.dtype is torch.float32 for p in params)
        shapes = [(rows, p.shape[1], p.shape[0]) for p in params if p.dim() == 2]
        self.enabled = plain and _users_choice() == 'highest' and pays(tuple(sorted(shapes)))

    def __enter__(self) -> None:
        if self.enabled:
            _set_precision('medium')

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            _set_precision('highest')


def _users_choice() -> str:
    """What the process is set to; somebody who chose a setting keeps it."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # chosen through torch.backends.*.fp32_precision, which this question does not allow
        return 'other'


def pays(shapes: tuple[tuple[int, int, int], ...]) -> bool:
    """
    Overview:
        Whether layers of these shapes (rows, inputs, outputs) are faster by oneDNN, all together, and exact.
    """
    if not any(rows * inputs * outputs >= WORTH_TESTING for rows, inputs, outputs in shapes):
        return False
    found = [_measure(*shape, torch.get_num_threads()) for shape in shapes]
    plain, fast = sum(f[0] for f in found), sum(f[1] for f in found)
    return fast <= _GAIN * plain and max(f[2] for f in found) <= _ERROR


@lru_cache(maxsize=256)
def _measure(rows: int, inputs: int, outputs: int, threads: int) -> tuple[float, float, float]:
    """Seconds without and with oneDNN, and the error with it."""
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(n, inputs, generator=generator) for n in (rows, outputs))
    best = {'highest': float('inf'), 'medium': float('inf')}
    try:
        for _ in range(8):  # in turn, so that a busy neighbour meets both
            for precision in best:
                _set_precision(precision)
                start = time.perf_counter()
                for _ in range(4):
                    result = torch.mm(x, weight.t())
                best[precision] = min(best[precision], time.perf_counter() - start)
    finally:
        _set_precision('highest')
    exact = x.double() @ weight.double().t()
    return best['highest'], best['medium'], float((result - exact).abs().max() / exact.abs().max())
