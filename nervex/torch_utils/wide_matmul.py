"""Wide layers on the CPU: oneDNN's matrix products where they are faster than MKL's and just as exact."""
import contextlib
import functools
import logging
import time
from collections.abc import Iterable, Iterator

import torch

logger = logging.getLogger(__name__)

_MAX_ERROR = 1e-5  # of a 256 x 256 x 256 product, relative; bfloat16 units (AMX) are far above and stay off
_MAX_TIME = 0.8  # of the ordinary product: a clear gain only, so that noise does not decide
_GAIN, _FEE = 9., 11.  # us saved per million multiply-adds, us paid per product: measured on an AVX-512 core
_TIME = 18.  # us per million multiply-adds of the ordinary product

_set_precision = getattr(torch._C, '_set_float32_matmul_precision', torch.set_float32_matmul_precision)


@contextlib.contextmanager
def fast_matmul(on: bool = True) -> Iterator[None]:
    """
    Overview:
        Inside the block float32 products on the CPU may run in oneDNN. The switch belongs to the whole process:
        products of one row are slower with it, so keep the block around an update, not around acting.
    """
    if not on:
        yield
        return
    before = torch.get_float32_matmul_precision()
    _set_precision('medium')
    try:
        yield
    finally:
        _set_precision(before)


def fast_matmul_pays(parameters: Iterable[torch.Tensor], rows: int) -> bool:
    """
    Overview:
        Whether an update over ``rows`` samples of linear layers with these weights gains by it: by their shapes, and
        by one measurement on this machine. Depends on nothing else, so that a run repeats.
    """
    weights = [p for p in parameters if p.dim() == 2]
    if not weights or any(p.device.type != 'cpu' or p.dtype != torch.float32 for p in weights):
        return False
    millions = [rows * p.shape[0] * p.shape[1] / 1e6 for p in weights]
    gain = sum(_GAIN * m - _FEE for m in millions)
    return gain > 0.1 * sum(_TIME * m + 2. for m in millions) and _machine_gains(torch.get_num_threads())


@functools.lru_cache
def _machine_gains(threads: int) -> bool:
    """Time and error of one product both ways; about 20 ms, once per process and number of threads."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(256, 256, generator=generator) for _ in range(2))
    exact = a.double() @ b.double()
    best, errors = {}, {}
    for _ in range(20):
        for on in (False, True):
            with fast_matmul(on):
                start = time.perf_counter()
                product = a @ b
                best[on] = min(best.get(on, 1.), time.perf_counter() - start)
            errors[on] = ((product.double() - exact).abs().max() / exact.abs().max()).item()
    gains = errors[True] < _MAX_ERROR and best[True] < _MAX_TIME * best[False]
    use = 'used for wide layers' if gains else 'not used'
    logger.info('oneDNN products: %.2f of the time, error %.1e (%.1e without), %s with %d threads',
                best[True] / best[False], errors[True], errors[False], use, threads)
    return gains
