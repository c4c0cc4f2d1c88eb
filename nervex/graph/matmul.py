"""oneDNN for wide float32 layers on the CPU: the rule by shapes and CPU, and the switch around an update."""

import platform
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import torch

from nervex.utils.errors import unknown_name

CHOICES = ('auto', 'onednn', 'mkl')
_ENOUGH = 1_500_000  # multiply-adds of a layer, in the mean over the layers
_ERROR = 1e-5  # largest error, relative to the largest result: float32 stays below 1e-6, bfloat16 is at 1e-3
_set_precision = getattr(torch._C, '_set_float32_matmul_precision', torch.set_float32_matmul_precision)


class FastMatmul:
    """
    Overview:
        A context in which torch multiplies float32 matrices by oneDNN instead of MKL. Both round differently, so the
        choice is a rule (``pays``) or a setting, never a measurement: the same seed ends with the same numbers however
        busy the machine is. Torch knows one such setting for the whole process, so the context is held during an
        update only: single rows, as an acting policy has them, get slower by it.
    Arguments:
        - params (:obj:`Iterable[torch.Tensor]`): weights; the matrices among them are the layers
        - rows (:obj:`int`): rows of a batch
        - choice (:obj:`str`): 'auto' (by the rule), 'onednn' or 'mkl'
    """

    __slots__ = ('enabled',)

    def __init__(self, params: Iterable[torch.Tensor], rows: int, choice: str = 'auto') -> None:
        if choice not in CHOICES:
            raise ValueError(unknown_name('matmul', choice, CHOICES))
        params = list(params)
        shapes = [(rows, p.shape[1], p.shape[0]) for p in params if p.dim() == 2]
        plain = all(p.device.type == 'cpu' and p.dtype is torch.float32 for p in params)
        wanted = choice == 'onednn' or (choice == 'auto' and pays(shapes))
        self.enabled = wanted and plain and _users_choice() == 'highest' and _is_exact()

    def __enter__(self) -> None:
        if self.enabled:
            _set_precision('medium')

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            _set_precision('highest')


def pays(shapes: Iterable[tuple[int, int, int]]) -> bool:
    """
    Overview:
        Whether layers of these shapes (rows, inputs, outputs) are faster by oneDNN, all together. Forward and backward
        of a layer of M million multiply-adds were measured as 6 + 52 M us by MKL and 32 + 24 M us by oneDNN on an
        AMD EPYC with AVX-512 (widths 32 to 1024, batches 32 to 1024, one thread), where MKL takes half of each vector:
        oneDNN saves a fifth at 1.5 million a layer, half at 8, and loses below one. Other CPUs stay with MKL.
    """
    sizes = [rows * inputs * outputs for rows, inputs, outputs in shapes]
    halved = _vendor() == 'AuthenticAMD' and torch.backends.cpu.get_cpu_capability() == 'AVX512'
    return halved and sum(sizes) >= _ENOUGH * len(sizes) > 0


@lru_cache(maxsize=1)
def _vendor() -> str:
    """The CPU's maker, as the CPU says it."""
    info = Path('/proc/cpuinfo')
    if info.exists():
        lines = (line.partition(':') for line in info.read_text(encoding='utf-8', errors='replace').splitlines())
        return next((value.strip() for key, _, value in lines if key.strip() == 'vendor_id'), '')
    name = platform.processor()
    return 'AuthenticAMD' if 'AuthenticAMD' in name else name


@lru_cache(maxsize=1)
def _is_exact() -> bool:
    """Whether oneDNN multiplies in float32 here: on CPUs with matrix units the same switch means bfloat16."""
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(256, 256, generator=generator) for _ in range(2))
    _set_precision('medium')
    try:
        result = x @ weight
    finally:
        _set_precision('highest')
    exact = x.double() @ weight.double()
    return float((result - exact).abs().max() / exact.abs().max()) <= _ERROR


def _users_choice() -> str:
    """What the process is set to; somebody who chose a setting keeps it."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # chosen through torch.backends.*.fp32_precision, which this question does not allow
        return 'other'
