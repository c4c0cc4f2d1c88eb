"""Heads of action values: plain or dueling."""

import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from nervex.torch_utils.network.activation import Activation, get_activation
from nervex.torch_utils.network.mlp import LinearType, mlp


class LinearHead(nn.Linear):
    """
    Overview:
        Action values (or logits) as one linear layer.
    Shapes:
        - input :math:`(*, hidden\\_dim)`, logit :math:`(*, A)`
    """

    def forward(self, x: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        return {'logit': F.linear(x, self.weight, self.bias)}


class DiscreteHead(nn.Module):
    """
    Overview:
        Action values (or logits) on top of ``layer_num`` hidden layers.
    Arguments:
        - hidden_dim (:obj:`int`): size of the features
        - action_dim (:obj:`int`): number of actions
        - layer_num (:obj:`int`): hidden layers in the head, 0 is a single linear layer
        - activation, linear: see ``MLP``
    Shapes:
        - input :math:`(*, hidden\\_dim)`, logit :math:`(*, A)`
    """

    def __init__(
        self,
        hidden_dim: int,
        action_dim: int,
        layer_num: int = 0,
        activation: str | Activation = 'relu',
        linear: LinearType = nn.Linear,
    ) -> None:
        super().__init__()
        self.q = mlp(hidden_dim, [hidden_dim] * layer_num, action_dim, activation, linear)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {'logit': self.q(x)}


class DuelingHead(nn.Module):
    """
    Overview:
        Dueling action values, Q = V + A - mean(A) (Wang et al. 2016, https://arxiv.org/abs/1511.06581). The two streams
        see the same features, so their first layers are one layer of twice the width.
    Arguments:
        - layer_num (:obj:`int`): hidden layers of each of the two streams
        - outputs (:obj:`int`): numbers for each action, e.g. the atoms of a distribution
        - hidden_dim, action_dim, activation, linear: see ``DiscreteHead``
    Shapes:
        - input :math:`(*, hidden\\_dim)`, logit :math:`(*, A)`, or :math:`(*, A, outputs)` if there are several
    """

    def __init__(
        self,
        hidden_dim: int,
        action_dim: int,
        layer_num: int = 1,
        activation: str | Activation = 'relu',
        linear: LinearType = nn.Linear,
        outputs: int = 1,
    ) -> None:
        super().__init__()
        self._outputs = outputs
        self._action_dim = action_dim
        self._act = get_activation(activation)
        self.streams = None if layer_num == 0 else linear(hidden_dim, 2 * hidden_dim)
        widths = [hidden_dim] * (layer_num - 1)
        self.value = mlp(hidden_dim, widths, outputs, activation, linear)
        self.advantage = mlp(hidden_dim, widths, action_dim * outputs, activation, linear)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {'logit': self.combined(x)}

    def combined(self, x: Tensor) -> Tensor:
        """V + A - mean(A)."""
        if self.streams is None:
            value, advantage = self.value(x), self.advantage(x)
        else:
            for_value, for_advantage = self._act(self.streams(x)).chunk(2, -1)
            value, advantage = self.value(for_value), self.advantage(for_advantage)
        if self._outputs > 1:
            value = value.unsqueeze(-2)
            advantage = advantage.unflatten(-1, (self._action_dim, self._outputs))
            return value + (advantage - advantage.mean(-2, keepdim=True))
        return value + (advantage - advantage.mean(-1, keepdim=True))


def make_q_head(
    hidden_dim: int,
    action_dim: int,
    dueling: bool,
    layer_num: int,
    activation: str | Activation = 'relu',
    linear: LinearType = nn.Linear,
) -> nn.Module:
    """The cheapest head that does what is asked."""
    if dueling:
        return DuelingHead(hidden_dim, action_dim, layer_num, activation, linear)
    if layer_num == 0 and linear is nn.Linear:
        return LinearHead(hidden_dim, action_dim)
    return DiscreteHead(hidden_dim, action_dim, layer_num, activation, linear)
