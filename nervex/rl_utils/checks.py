"""Checks shared by the operators: the value got, the rule, the remedy."""

from collections.abc import Sequence
from typing import Any

import torch


class ShapeError(ValueError, AssertionError):
    """A tensor of the wrong rank or shape. Also an AssertionError, because a rank check is one."""


def check_shape(where: str, **tensors: tuple[torch.Tensor | None, Sequence[int]]) -> None:
    """Compare tensors with the shapes that they must have, field name -> (tensor, shape); None is an absent field."""
    for name, (tensor, shape) in tensors.items():
        if tensor is not None and not (isinstance(tensor, torch.Tensor) and tensor.shape == torch.Size(shape)):
            check_tensor(where, name, tensor, f'of shape {tuple(shape)}')
            raise ShapeError(f'{where}: {name} has shape {tuple(tensor.shape)}, expected {tuple(shape)}')


def check_alike(where: str, shape: Sequence[int], **tensors: torch.Tensor | None) -> None:
    """As :func:`check_shape`, for tensors that must all have one shape."""
    for name, tensor in tensors.items():
        if tensor is not None and not (isinstance(tensor, torch.Tensor) and tensor.shape == shape):
            check_shape(where, **{name: (tensor, shape)})


def check_tensor(where: str, name: str, value: Any, which: str) -> None:
    """TypeError for anything but a tensor; ``which`` says what tensor is expected."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f'{where}: {name} is a {type(value).__name__}, expected a tensor {which}: torch.as_tensor(...)')


def check_rank(where: str, name: str, tensor: torch.Tensor, rank: int, layout: str) -> None:
    """Compare a tensor's rank with the documented one; ``layout`` says what its axes mean, e.g. '(B, N)'."""
    check_tensor(where, name, tensor, f'with {rank} axes {layout}')
    if tensor.dim() != rank:
        raise ShapeError(f'{where}: {name} has shape {tuple(tensor.shape)}, expected {rank} axes {layout}')


def chosen(where: str, table: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """The entries (*) of the actions (*) in the last axis of ``table`` (*, N)."""
    try:
        return table.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    except RuntimeError as error:  # looked at only now: on a GPU each look would wait for all work before it
        count = table.shape[-1]
        if action.is_floating_point() or action.dtype is torch.bool:
            raise TypeError(f'{where}: actions are {action.dtype}, expected integers: action.long()') from error
        if action.numel() and not 0 <= action.min() <= action.max() < count:
            bounds = f'{action.min().item()} ... {action.max().item()}'
            raise ValueError(f'{where}: actions {bounds}, expected 0 ... {count - 1} for {count} actions') from error
        raise


def not_done(done: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor | None:
    """``1 - done``, the factor of the bootstrap value, for ``done`` as bool, integer or float. None stays None."""
    if done is None:
        return None
    if done.dtype is torch.bool:
        return (~done).to(like.dtype)
    return 1.0 - (done if done.dtype is like.dtype else done.to(like.dtype))


def weighted_mean(loss: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """``mean(weight * loss)``: weights scale the samples, the divisor stays the number of samples."""
    return loss.mean() if weight is None else (loss * weight).mean()
