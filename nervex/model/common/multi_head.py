"""One head for each entry of a multi-discrete action."""

from collections.abc import Callable, Sequence

import torch.nn as nn
from torch import Tensor


class MultiHead(nn.Module):
    """
    Overview:
        Several heads over the same features; each key of their outputs becomes a list in the order of the heads.
    Arguments:
        - make_head (:obj:`Callable`): head for a number of actions
        - action_dims (:obj:`Sequence[int]`): numbers of actions
    """

    def __init__(self, make_head: Callable[[int], nn.Module], action_dims: Sequence[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(make_head(n) for n in action_dims)

    def forward(self, x: Tensor, **kwargs: int) -> dict[str, list[Tensor]]:
        outputs = [head(x, **kwargs) for head in self.heads]
        return {key: [output[key] for output in outputs] for key in outputs[0]}


def one_or_many(make_head: Callable[[int], nn.Module], action_dim: int | Sequence[int]) -> nn.Module:
    """A single head for an int, a ``MultiHead`` for a list."""
    return make_head(action_dim) if isinstance(action_dim, int) else MultiHead(make_head, action_dim)
