"""Networks of implicit Q-learning: a Gaussian around a bounded mean, twin action values and a state value."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.heads import RegressionHead, TwinQ
from nervex.model.common.modes import ModeNet, entry_of, obs_of
from nervex.model.sac import noise_like
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP, Layers
from nervex.torch_utils.network.shapes import as_size

_LOG_SIGMA_MIN, _LOG_SIGMA_MAX = -5.0, 2.0


class GaussianActor(nn.Module):
    """
    Overview:
        Mean in (-1, 1) and deviation of a Gaussian over actions; the deviation is the same in all states.
    Shapes:
        - input :math:`(*, obs\\_dim)`, mu and sigma :math:`(*, action\\_dim)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int,
        hidden_dim_list: Layers,
        activation: str | Activation,
    ) -> None:
        super().__init__()
        self.mu = RegressionHead(obs_dim, action_dim, hidden_dim_list, activation, True, 'obs')
        self.log_sigma = nn.Parameter(torch.zeros(action_dim))

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs that the class describes."""
        mu = self.mu(obs)
        return mu, self.log_sigma.clamp(_LOG_SIGMA_MIN, _LOG_SIGMA_MAX).exp().expand_as(mu)


class ImplicitQModel(ModeNet):
    """
    Overview:
        Networks of implicit Q-learning (Kostrikov et al. 2022, https://arxiv.org/abs/2110.06169): ``model.actor``, and
        in ``model.critic`` the twins ``q`` and the state value ``v``, which share nothing.
    Arguments:
        - obs_dim, action_dim (:obj:`int | Sequence[int]`): sizes of observation and action
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the hidden layers of all of them
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
    Interfaces:
        forward, compute_action, compute_q, compute_value
    """

    modes = ('compute_action', 'compute_q', 'compute_value')

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        hidden_dim_list: Layers = (256, 256),
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        action_size = as_size(action_dim, 'action_dim')
        self.actor = GaussianActor(obs_dim, action_size, hidden_dim_list, activation)
        q = TwinQ(2, obs_dim, action_size, hidden_dim_list, activation)
        v = MLP(obs_dim, hidden_dim_list, 1, activation, name='obs')
        self.critic = nn.ModuleDict({'q': q, 'v': v})

    def compute_action(
        self, data: Tensor | dict[str, Any], deterministic: bool = False, generator: torch.Generator | None = None
    ) -> dict[str, Any]:
        """
        Overview:
            The action to play: a draw, within [-1, 1], or the mean; arguments as in ``SACModel``.
        Shapes:
            - obs :math:`(B, obs\\_dim)`, action :math:`(B, action\\_dim)`, logit: the pair (mu, sigma)
        """
        mu, sigma = self.actor(obs_of(data))
        action = mu if deterministic else (mu + sigma * noise_like(mu, generator)).clamp(-1.0, 1.0)
        return {'action': action, 'logit': (mu, sigma)}

    def compute_q(self, data: dict[str, Any]) -> dict[str, Any]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, action :math:`(B, action\\_dim)`, q_value: a list of two :math:`(B)`
        """
        return {'q_value': self.critic['q'](obs_of(data), entry_of(data, 'action'))}

    def compute_value(self, data: Tensor | dict[str, Any]) -> dict[str, Tensor]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, value :math:`(B)`
        """
        return {'value': self.critic['v'](obs_of(data)).squeeze(-1)}
