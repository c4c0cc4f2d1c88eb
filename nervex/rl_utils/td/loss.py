"""What the temporal-difference losses return, and the pieces that they share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from nervex.rl_utils.checks import ShapeError, weighted_mean

Criterion = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
squared_error = nn.MSELoss(reduction='none')


class TDLoss(NamedTuple):
    """
    Overview:
        A loss and the error of each sample. It unpacks as the pair ``loss, td_error_per_sample``, and it can be used
        as the loss itself through ``backward()`` and ``item()``.
    """

    loss: torch.Tensor
    td_error_per_sample: torch.Tensor

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Backpropagate ``loss``; arguments as those of ``torch.Tensor.backward``."""
        self.loss.backward(*args, **kwargs)

    def item(self) -> float:
        """The value of ``loss``."""
        return self.loss.item()


def reduce_td(
    value: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, criterion: Criterion, where: str
) -> TDLoss:
    """
    Overview:
        The weighted mean of ``criterion(value, target)`` beside the signed error ``target - value`` of each sample,
        which serves as priority and carries no gradient.
    """
    target = target.detach()
    per_sample = criterion(value, target)
    if per_sample.shape != value.shape:
        raise ShapeError(
            f'{where}: criterion returned shape {tuple(per_sample.shape)} for values {tuple(value.shape)}; '
            f"it must keep one error per sample: build it with reduction='none'"
        )
    return TDLoss(weighted_mean(per_sample, weight), target - value.detach())
