"""Shape checks shared by the operators: the value got, the rule, the remedy."""
from collections.abc import Sequence

import torch


class ShapeError(ValueError, AssertionError):
    """A tensor of the wrong rank or shape. Also an AssertionError, because a rank check is one."""


def check_shape(where: str, **tensors: tuple[torch.Tensor | None, Sequence[int]]) -> None:
    """
    Overview:
        Compare tensors with the shapes that they must have; None passes, because an optional field is absent.
    Arguments:
        - where (:obj:`str`): the operator's name, for the message
        - tensors (:obj:`dict`): field name -> (tensor, expected shape)
    """
    for name, (tensor, shape) in tensors.items():
        if tensor is not None and tensor.shape != torch.Size(shape):
            raise ShapeError(f'{where}: {name} has shape {tuple(tensor.shape)}, expected {tuple(shape)}')


def check_rank(where: str, name: str, tensor: torch.Tensor, rank: int, layout: str) -> None:
    """
    Overview:
        Compare one tensor's rank with the documented one.
    Arguments:
        - layout (:obj:`str`): what the axes mean, e.g. ``'(B, N)'``
    """
    if tensor.dim() != rank:
        raise ShapeError(f'{where}: {name} has shape {tuple(tensor.shape)}, expected {rank} axes {layout}')


def not_done(done: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor | None:
    """
    Overview:
        The factor of the bootstrap value, ``1 - done``, for ``done`` as bool, integer or float. None stays None.
    """
    if done is None:
        return None
    if done.dtype is torch.bool:
        return (~done).to(like.dtype)
    return 1. - (done if done.dtype is like.dtype else done.to(like.dtype))


def weighted_mean(loss: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """
    Overview:
        ``mean(weight * loss)``: the importance weights scale the samples, the divisor stays the number of samples.
    """
    return loss.mean() if weight is None else (loss * weight).mean()
