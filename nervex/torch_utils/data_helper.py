"""Nested data between devices, dtypes, tensors, arrays and lists; whether all of a model gets gradients."""

import numbers
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from nervex.utils import tree
from nervex.utils.lazy import lazy_exports

__getattr__, __dir__, _ = lazy_exports(__name__, {'nervex.data.dataloader': 'CudaFetcher'})


def _map(function: Callable[[Any], Any], item: Any, ignore_keys: Sequence[str] = (), rows: bool = False) -> Any:
    """``function`` of every leaf; with ``rows`` a list of numbers is one. What ignored keys hold stays as it is."""
    parts = tree.children(item)
    if parts is None or (rows and isinstance(item, list) and item and all(map(_is_number, item))):
        return function(item)
    mapped = {k: v if k in ignore_keys else _map(function, v, ignore_keys, rows) for k, v in parts.items()}
    return tree.rebuild(item, mapped)


def _is_number(item: Any) -> bool:
    return isinstance(item, numbers.Number)


def to_device(item: Any, device: str | torch.device, ignore_keys: Sequence[str] = ()) -> Any:
    """Tensors and modules on another device, but for entries of ``ignore_keys``, at any depth; the rest as it is."""
    movable = (torch.Tensor, torch.nn.Module)
    return _map(lambda x: x.to(device) if isinstance(x, movable) else x, item, ignore_keys)


def to_dtype(item: Any, dtype: torch.dtype) -> Any:
    """Tensors in another dtype; everything else as it is."""
    return _map(lambda x: x.to(dtype) if isinstance(x, torch.Tensor) else x, item)


def to_tensor(item: Any, dtype: torch.dtype | None = None) -> Any:
    """
    Overview:
        Arrays, numbers and lists of numbers become tensors; None and text stay.
    Arguments:
        - dtype (:obj:`torch.dtype | None`): of all of them; None keeps the array's, and float32 for Python floats
    """

    def convert(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x if dtype is None else x.to(dtype)
        if isinstance(x, (np.ndarray, np.generic)):
            return torch.from_numpy(np.ascontiguousarray(x).reshape(np.shape(x))).to(dtype)
        return torch.tensor(x, dtype=dtype) if _is_number(x) or isinstance(x, list) else _pass(x, 'to_tensor')

    return _map(convert, item, rows=True)


def to_ndarray(item: Any, dtype: Any = None) -> Any:
    """Tensors, numbers and lists of numbers become arrays; None and text stay."""

    def convert(x: Any) -> Any:
        x = x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else x
        known = isinstance(x, (np.ndarray, np.generic, list)) or _is_number(x)
        return np.asarray(x, dtype=dtype) if known else _pass(x, 'to_ndarray')

    return _map(convert, item, rows=True)


def to_list(item: Any) -> Any:
    """Tensors and arrays become (nested) lists, or numbers if they have no dimension; numbers, None and text stay."""

    def convert(x: Any) -> Any:
        if isinstance(x, (torch.Tensor, np.ndarray, np.generic)):
            return x.tolist()
        return x if _is_number(x) else _pass(x, 'to_list')

    return _map(convert, item)


def tensor_to_list(item: Any) -> Any:
    """As ``to_list``, for tensors only: everything else stays."""
    return _map(lambda x: x.tolist() if isinstance(x, torch.Tensor) else x, item)


def get_tensor_data(item: Any) -> Any:
    """Copies of the tensors without their graphs."""
    return _map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, item)


def same_shape(data: Sequence[torch.Tensor]) -> bool:
    """Whether all tensors have one shape; True for none."""
    return len({tuple(x.shape) for x in data}) <= 1


class LogDict(dict):
    """
    Overview:
        A dict for logging: tensors and arrays put in become numbers, or lists if they have several elements.
    """

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, (torch.Tensor, np.ndarray)):
            size = value.numel() if isinstance(value, torch.Tensor) else value.size
            value = value.item() if size == 1 else value.tolist()
        super().__setitem__(key, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As dict, with the same conversion."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value


def build_log_buffer() -> LogDict:
    """An empty LogDict."""
    return LogDict()


def _pass(item: Any, who: str) -> Any:
    if item is None or isinstance(item, (str, torch.Generator)):
        return item
    raise TypeError(f'{who} takes tensors, arrays, numbers and containers of them, got {type(item).__name__}')


def is_differentiable(loss: torch.Tensor, model: nn.Module | Sequence[nn.Module], print_instead: bool = False) -> None:
    """
    Overview:
        Assert that the loss reaches every parameter of the model (or models), none of which may have a gradient yet;
        the error lists those that it does not reach.
    Arguments:
        - print_instead (:obj:`bool`): warn instead of raising
    """
    assert loss.dim() == 0, f'the loss must be a single number, got shape {tuple(loss.shape)}'
    models = [model] if isinstance(model, nn.Module) else list(model)
    prefixes = [f'{i}.' if len(models) > 1 else '' for i in range(len(models))]
    named = [(prefix + name, p) for prefix, m in zip(prefixes, models) for name, p in m.named_parameters()]
    early = [name for name, p in named if p.grad is not None]
    assert not early, f'these parameters have a gradient before backward: {", ".join(early)}'
    loss.backward()
    missed = [name for name, p in named if p.grad is None]
    if missed and print_instead:
        warnings.warn(f'the loss does not reach {", ".join(missed)}', stacklevel=2)
    else:
        assert not missed, f'the loss does not reach {", ".join(missed)}'
