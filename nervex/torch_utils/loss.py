"""Classification losses, and distances between what they compare."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from nervex.utils.errors import unknown_name


class LabelSmoothCELoss(nn.Module):
    """
    Overview:
        Cross entropy towards ``1 - ratio`` for the label and ``ratio / (N - 1)`` for each other class.
    Shapes:
        - logits (:obj:`torch.FloatTensor`): :math:`(B, N)`, labels (:obj:`torch.LongTensor`): :math:`(B, )`
    """

    def __init__(self, ratio: float) -> None:
        super().__init__()
        if not 0.0 <= ratio < 1.0:
            raise ValueError(f'ratio must be in [0, 1), got {ratio}')
        self.ratio = ratio

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss."""
        return _smoothed(logits, self.ratio).gather(1, labels.unsqueeze(1)).mean()


def _smoothed(logits: torch.Tensor, ratio: float) -> torch.Tensor:
    """The loss of every row if its label was this or that class, (B, N)."""
    log_p, others = F.log_softmax(logits, dim=1), ratio / max(1, logits.shape[1] - 1)
    return -((1.0 - ratio - others) * log_p + others * log_p.sum(1, keepdim=True))


class SoftFocalLoss(nn.Module):
    """
    Overview:
        Cross entropy weighted by ``(1 - p)^gamma``, so that easy samples count less (https://arxiv.org/abs/1708.02002).
    Shapes:
        - logits (:obj:`torch.FloatTensor`): :math:`(B, N)`, labels (:obj:`torch.LongTensor`): :math:`(B, )`
    """

    weight: torch.Tensor | None

    def __init__(
        self, gamma: float = 2.0, weight: torch.Tensor | None = None, size_average: bool = True, reduce: bool = True
    ) -> None:
        super().__init__()
        self.gamma, self.size_average, self.reduce = gamma, size_average, reduce
        self.register_buffer('weight', weight)

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss."""
        log_p = F.log_softmax(logits, dim=1).gather(1, labels.unsqueeze(1)).squeeze(1)
        loss = -(1.0 - log_p.exp()).pow(self.gamma) * log_p
        if self.weight is not None:
            loss = loss * self.weight[labels]
        if not self.reduce:
            return loss
        return loss.mean() if self.size_average else loss.sum()


_CRITERIA: dict[str, Callable[..., nn.Module]] = {
    'cross_entropy': nn.CrossEntropyLoss,
    'label_smooth_ce': LabelSmoothCELoss,
    'soft_focal_loss': SoftFocalLoss,
}


def build_ce_criterion(type_: str = 'cross_entropy', **kwargs: object) -> nn.Module:
    """A criterion by name: cross_entropy, label_smooth_ce (needs ``ratio``) or soft_focal_loss."""
    if type_ not in _CRITERIA:
        raise ValueError(unknown_name('criterion', type_, _CRITERIA))
    return _CRITERIA[type_](**kwargs)


class MultiLogitsLoss(nn.Module):
    """
    Overview:
        Labels without an order against rows of logits: each label is matched with one row so that the summed cross
        entropy is smallest, and the mean over the matches is returned.
    Shapes:
        - logits (:obj:`torch.FloatTensor`): :math:`(M, N)`, labels (:obj:`torch.LongTensor`): :math:`(K, )`, K <= M
    """

    def __init__(self, criterion: str = 'cross_entropy', smooth_ratio: float = 0.1) -> None:
        super().__init__()
        if criterion not in ('cross_entropy', 'label_smooth_ce'):
            raise ValueError(unknown_name('criterion', criterion, ('cross_entropy', 'label_smooth_ce')))
        self.ratio = smooth_ratio if criterion == 'label_smooth_ce' else 0.0

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss."""
        assert logits.dim() == 2 and labels.dim() == 1, (logits.shape, labels.shape)
        if not 0 < len(labels) <= len(logits):
            raise ValueError(f'{len(logits)} rows of logits take 1 to {len(logits)} labels, got {len(labels)}')
        cost = _smoothed(logits, self.ratio)[:, labels]  # (M, K)
        rows = match(cost.detach().t().tolist())
        return cost[torch.tensor(rows), torch.arange(len(labels))].mean()


def match(cost: Sequence[Sequence[float]]) -> list[int]:
    """
    Overview:
        For every row a column of its own so that the sum of costs is smallest: row after row takes a column along the
        cheapest path, on which each earlier row gives up its column for another one.
    Arguments:
        - cost (:obj:`Sequence[Sequence[float]]`): K rows, M >= K columns
    """
    table = np.asarray(cost)
    owner = np.full(table.shape[1], -1)  # row that has a column
    for row in range(len(table)):
        total, came = table[row].copy(), np.full(len(owner), -1)  # of a path to each column; the column before it
        for _ in range(row + 1):  # no path gives up a column twice
            for given_up in np.flatnonzero(owner >= 0):
                along = total[given_up] + table[owner[given_up]] - table[owner[given_up], given_up]
                shorter = along < total - 1e-12
                total[shorter], came[shorter] = along[shorter], given_up
        at = int(np.where(owner < 0, total, np.inf).argmin())
        while came[at] >= 0:
            owner[at], at = owner[came[at]], came[at]
        owner[at] = row
    return [int((owner == row).argmax()) for row in range(len(table))]


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
