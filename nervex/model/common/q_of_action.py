"""Action values of continuous actions: networks over observation and action together."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP
from nervex.torch_utils.network.shapes import InputShapeError, as_shape, as_size, flattened


class QOfAction(nn.Module):
    """
    Overview:
        Q(s, a): one network over the joined observation and action.
    Arguments:
        - obs_dim, action_dim (:obj:`int | Sequence[int]`): sizes of observation and action
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the hidden layers
        - activation (:obj:`str | Callable`): after each hidden layer
    Shapes:
        - obs :math:`(*, obs\\_dim)`, action :math:`(*, action\\_dim)`, or :math:`(*)` if it has one dimension; q
          :math:`(*)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        hidden_dim_list: Sequence[int] = (256, 256),
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        self._obs_shape, self._action_dim = as_shape(obs_dim), as_size(action_dim, 'action_dim')
        self.net = MLP(as_size(obs_dim) + self._action_dim, hidden_dim_list, 1, activation, name='obs with action')

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        obs = flattened(obs, self._obs_shape)
        if self._action_dim == 1 and action.dim() == obs.dim() - 1:
            action = action.unsqueeze(-1)
        if action.shape[-1:] != (self._action_dim,) or action.shape[:-1] != obs.shape[:-1]:
            raise InputShapeError(
                f'action of shape {tuple(action.shape)} does not fit: the critic expects '
                f'{(*obs.shape[:-1], self._action_dim)} beside obs {tuple(obs.shape)}'
            )
        return self.net(torch.cat([obs, action.to(obs.dtype)], -1)).squeeze(-1)


class TwinQ(nn.ModuleList):
    """Several independent ``QOfAction`` (two against overestimation, Fujimoto et al. 2018): answers a list."""

    def __init__(self, count: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(QOfAction(*args, **kwargs) for _ in range(count))

    def forward(self, obs: Tensor, action: Tensor) -> list[Tensor]:
        return [q(obs, action) for q in self]
