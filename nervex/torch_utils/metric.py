"""Distances between sequences."""

from collections.abc import Callable

import torch


def levenshtein_distance(
    pred: torch.Tensor,
    target: torch.Tensor,
    pred_extra: torch.Tensor | None = None,
    target_extra: torch.Tensor | None = None,
    extra_fn: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
) -> torch.Tensor:
    """
    Overview:
        The fewest insertions, deletions and replacements that turn one sequence into the other.
    Arguments:
        - extra_fn (:obj:`Callable | None`): cost in [0, 1] of two equal elements with different extras (e.g. positions)
    Shapes:
        - pred (:obj:`torch.LongTensor`): :math:`(N1, )`, target: :math:`(N2, )`; both may be empty
        - pred_extra, target_extra (:obj:`torch.Tensor`): :math:`(N1, *)` and :math:`(N2, *)`
        - distance (:obj:`torch.FloatTensor`): :math:`(1, )`
    """
    assert pred.dim() == target.dim() == 1, (pred.shape, target.shape)
    if extra_fn is None:
        pred_extra, target_extra, extra_fn = pred, target, lambda x, y: torch.zeros(())
    elif pred_extra is None or target_extra is None:
        raise ValueError('extra_fn needs pred_extra and target_extra')
    a, b = pred.tolist(), target.tolist()
    previous = [float(j) for j in range(len(b) + 1)]
    for i, x in enumerate(a):
        row = [i + 1.0]
        for j, y in enumerate(b):
            cost = 1.0
            if x == y:
                cost = float(extra_fn(pred_extra[i], target_extra[j]))
            row.append(min(previous[j] + cost, previous[j + 1] + 1.0, row[j] + 1.0))
        previous = row
    return torch.tensor([previous[-1]])


def hamming_distance(pred: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | float = 1.0) -> torch.Tensor:
    """
    Overview:
        How many bits differ, per sample.
    Shapes:
        - pred, target (:obj:`torch.LongTensor`): :math:`(B, N)` of zeros and ones; weight: a number or :math:`(N, )`
        - distance (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    assert pred.shape == target.shape and pred.dim() == 2, (pred.shape, target.shape)
    if not (torch.all((pred == 0) | (pred == 1)) and torch.all((target == 0) | (target == 1))):
        raise ValueError('hamming_distance takes zeros and ones')
    return ((pred != target).float() * weight).sum(1)
