"""The twin network of soft Q-learning."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.network.activation import Activation

from .value_nets import FCDiscreteNet


class SQNDiscreteNet(nn.Module):
    """
    Overview:
        Two (or one) independent networks of action values; ``logit`` is their minimum, from which actions are taken.
    Arguments:
        - use_twin_q (:obj:`bool`): two networks, as the algorithm needs (https://arxiv.org/abs/1912.10891), or one
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, or a list for several heads; q_value: a list with one such
          entry a network
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Sequence[int] | None = None,
        dueling: bool = False,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        use_twin_q: bool = True,
    ) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            FCDiscreteNet(obs_dim, action_dim, embedding_dim, hidden_dim_list, dueling, head_layer_num, activation)
            for _ in range(2 if use_twin_q else 1)
        )

    def forward(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        outputs = [net(data) for net in self.nets]
        q = [output['logit'] for output in outputs]
        if isinstance(q[0], list):
            least: Any = [heads[0] if len(heads) == 1 else torch.minimum(*heads) for heads in zip(*q)]
        else:
            least = q[0] if len(q) == 1 else torch.minimum(*q)
        return {**outputs[0], 'logit': least, 'q_value': q}
