"""Phasic policy gradient: a policy network with a value head of its own, and a value network beside it."""

from collections.abc import Sequence
from typing import Any

import torch.nn as nn
from torch import Tensor

from nervex.model.actor_critic.value_ac import ConvValueAC, FCValueAC, ValueAC
from nervex.model.common.encoder import ConvEncoder, FCEncoder
from nervex.model.common.inputs import obs_of
from nervex.model.common.modes import ModeNet
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import mlp


class PPG(ModeNet):
    """
    Overview:
        ``model.policy_net`` gives logits and an auxiliary value, ``model.value_net`` the value that the advantages are
        made of (Cobbe et al. 2020, https://arxiv.org/abs/2009.04416). They share nothing.
    Interfaces:
        forward, compute_action_value, compute_action, compute_value, compute_aux
    """

    modes = ('compute_action_value', 'compute_action', 'compute_value', 'compute_aux')

    def __init__(self, policy_net: ValueAC, value_net: nn.Module) -> None:
        super().__init__()
        self.policy_net = policy_net
        self.value_net = value_net

    def compute_action_value(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """``logit`` of the policy network and ``value`` (B, ) of the value network: what collecting needs."""
        return {**self.policy_net.compute_action(data), **self.compute_value(data)}

    def compute_action(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """``logit`` alone."""
        return self.policy_net.compute_action(data)

    def compute_value(self, data: Tensor | dict[str, Any]) -> dict[str, Tensor]:
        """``value`` (B, ) of the value network alone."""
        return {'value': self.value_net(obs_of(data)).squeeze(-1)}

    def compute_aux(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """``logit`` and ``aux_value`` (B, ), both of the policy network: what the auxiliary phase needs."""
        output = self.policy_net(data)
        output['aux_value'] = output.pop('value')
        return output


class FCPPG(PPG):
    """
    Overview:
        PPG over vector observations.
    Arguments:
        - see ``FCValueAC``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, value and aux_value :math:`(*)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        head_hidden_dim: int = 128,
        continous: bool = False,
        hidden_dim_list: Sequence[int] | None = None,
        head_layer_num: int = 1,
        activation: str | Activation = 'relu',
        ortho_init: bool = False,
        continuous: bool | None = None,
    ) -> None:
        policy_net = FCValueAC(
            obs_dim,
            action_dim,
            embedding_dim,
            head_hidden_dim,
            continous,
            hidden_dim_list,
            head_layer_num,
            activation=activation,
            ortho_init=ortho_init,
            continuous=continuous,
        )
        hidden = [128, embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        value_net = nn.Sequential(
            FCEncoder(obs_dim, hidden, activation), mlp(hidden[-1], [head_hidden_dim] * head_layer_num, 1, activation)
        )
        super().__init__(policy_net, value_net)


class ConvPPG(PPG):
    """
    Overview:
        PPG over images.
    Arguments:
        - see ``ConvValueAC``
    Shapes:
        - obs :math:`(*, C, H, W)`, logit :math:`(*, A)`, value and aux_value :math:`(*)`
    """

    def __init__(
        self,
        obs_dim: Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 512,
        head_hidden_dim: int = 128,
        continous: bool = False,
        hidden_dim_list: Sequence[int] | None = None,
        head_layer_num: int = 1,
        activation: str | Activation = 'relu',
        ortho_init: bool = False,
        channels: Sequence[int] = (32, 64, 64),
        kernels: Sequence[int] = (8, 4, 3),
        strides: Sequence[int] = (4, 2, 1),
        continuous: bool | None = None,
    ) -> None:
        convs: Any = {'channels': channels, 'kernels': kernels, 'strides': strides}
        policy_net = ConvValueAC(
            obs_dim,
            action_dim,
            embedding_dim,
            head_hidden_dim,
            continous,
            hidden_dim_list,
            head_layer_num,
            activation=activation,
            ortho_init=ortho_init,
            continuous=continuous,
            **convs,
        )
        hidden = [embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        value_net = nn.Sequential(
            ConvEncoder(obs_dim, hidden, activation=activation, **convs),
            mlp(hidden[-1], [head_hidden_dim] * head_layer_num, 1, activation),
        )
        super().__init__(policy_net, value_net)
