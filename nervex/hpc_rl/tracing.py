"""When results of NumPy and numba must not be used."""

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_traced(tensor: torch.Tensor) -> bool:
    """
    Overview:
        Whether a tracer or a transform (make_fx, torch.compile, vmap, ...) watches: it must see torch operators,
        because results of NumPy would be recorded as constants.
    """
    return (
        type(tensor) not in _PLAIN
        or torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
    )
