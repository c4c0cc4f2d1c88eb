"""Deterministic actor and critic (DDPG, TD3)."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from nervex.model.common.heads import QOfAction, RegressionHead, TwinQ
from nervex.model.common.modes import ModeNet, as_flag, entry_of, obs_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import Layers
from nervex.torch_utils.network.shapes import as_size


class QAC(ModeNet):
    """
    Overview:
        An actor ``model.actor`` that gives the action in (-1, 1) and a critic ``model.critic`` (one network, or twins)
        that judges it. They share nothing, so each may have its own optimizer.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size of an observation
        - action_dim (:obj:`int | Sequence[int]`): size of an action
        - use_twin_critic (:obj:`bool`): two critics, ``q_value`` is then a list
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the hidden layers
        - actor_hidden_dim_list, critic_hidden_dim_list (:obj:`Sequence[int] | None`): where they differ
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
    Interfaces:
        forward, compute_action, compute_q
    """

    modes = ('compute_action', 'compute_q')

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        use_twin_critic: bool = False,
        hidden_dim_list: Layers = (256, 256),
        actor_hidden_dim_list: Layers | None = None,
        critic_hidden_dim_list: Layers | None = None,
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        actor_widths = hidden_dim_list if actor_hidden_dim_list is None else actor_hidden_dim_list
        critic_widths = hidden_dim_list if critic_hidden_dim_list is None else critic_hidden_dim_list
        self.actor = RegressionHead(obs_dim, as_size(action_dim, 'action_dim'), actor_widths, activation, True, 'obs')
        critic = (obs_dim, action_dim, critic_widths, activation)
        self.critic = TwinQ(2, *critic) if as_flag(use_twin_critic, 'use_twin_critic') else QOfAction(*critic)

    def compute_action(self, data: Tensor | dict[str, Any]) -> dict[str, Tensor]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, action :math:`(B, action\\_dim)` within (-1, 1)
        """
        return {'action': self.actor(obs_of(data))}

    def compute_q(self, data: dict[str, Any]) -> dict[str, Any]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, action :math:`(B, action\\_dim)`, q_value :math:`(B)`, or a list of two
        """
        return {'q_value': self.critic(obs_of(data), entry_of(data, 'action'))}
