"""Heads of action values: plain or dueling."""
import torch.nn as nn
from torch import Tensor

from .activation import Activation
from .mlp import MLP, LinearType


class DiscreteHead(nn.Module):
    """
    Overview:
        Linear action values (or logits) on top of ``layer_num`` hidden layers.
    Arguments:
        - hidden_dim (:obj:`int`): size of the features
        - action_dim (:obj:`int`): number of actions
        - layer_num (:obj:`int`): hidden layers in the head, 0 is a single linear layer
        - activation, linear: see ``MLP``
    Shapes:
        - input :math:`(*, hidden\\_dim)`, logit :math:`(*, A)`
    """

    def __init__(self, hidden_dim: int, action_dim: int, layer_num: int = 0, activation: str | Activation = 'relu',
                 linear: LinearType = nn.Linear) -> None:
        super().__init__()
        self.q = linear(hidden_dim, action_dim) if layer_num == 0 else MLP(
            hidden_dim, [hidden_dim] * layer_num, action_dim, activation, linear=linear)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {'logit': self.q(x)}


class DuelingHead(nn.Module):
    """
    Overview:
        Dueling action values, Q = V + A - mean(A) (Wang et al. 2016, https://arxiv.org/abs/1511.06581).
    Arguments:
        - layer_num (:obj:`int`): hidden layers of each of the two streams
        - hidden_dim, action_dim, activation, linear: see ``DiscreteHead``
    Shapes:
        - input :math:`(*, hidden\\_dim)`, logit :math:`(*, A)`
    """

    def __init__(self, hidden_dim: int, action_dim: int, layer_num: int = 1, activation: str | Activation = 'relu',
                 linear: LinearType = nn.Linear) -> None:
        super().__init__()
        widths = [hidden_dim] * layer_num
        self.value = MLP(hidden_dim, widths, 1, activation, linear=linear)
        self.advantage = MLP(hidden_dim, widths, action_dim, activation, linear=linear)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        advantage = self.advantage(x)
        return {'logit': advantage - advantage.mean(-1, keepdim=True) + self.value(x)}
