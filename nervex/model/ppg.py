"""Phasic policy gradient: a policy network with a value head of its own, and a value network beside it."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch.nn as nn
from torch import Tensor

from nervex.model.actor_critic.value_ac import ValueAC
from nervex.model.common.encoder import conv, make_encoder
from nervex.model.common.modes import ModeNet, obs_of
from nervex.model.common.named import named_net
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import Layers, mlp


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


class _SizedPPG(PPG):
    """PPG over any encoder; its arguments are those of ``ValueAC``."""

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        head_hidden_dim: int = 128,
        continous: bool = False,
        hidden_dim_list: Layers | None = None,
        head_layer_num: int = 1,
        activation: str | Activation = 'relu',
        ortho_init: bool = False,
        continuous: bool | None = None,
        encoder_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        sizes = (obs_dim, action_dim, embedding_dim, head_hidden_dim, continous, hidden_dim_list, head_layer_num, True)
        rest: dict[str, Any] = {'continuous': continuous, 'encoder_kwargs': encoder_kwargs}
        policy_net = ValueAC(*sizes, activation, ortho_init, **rest)
        encoder = make_encoder(obs_dim, embedding_dim, hidden_dim_list, (128,), activation, **(encoder_kwargs or {}))
        value = mlp(encoder.out_dim, [head_hidden_dim] * head_layer_num, 1, activation)
        super().__init__(policy_net, nn.Sequential(encoder, value))


@named_net()
class FCPPG(_SizedPPG):
    """``PPG`` for vector observations; its arguments are those of ``FCValueAC``: obs :math:`(*, obs\\_dim)`."""


@named_net({'embedding_dim': 512}, encoder_kwargs=conv)
class ConvPPG(_SizedPPG):
    """``PPG`` for images; its arguments are those of ``ConvValueAC``: obs :math:`(*, C, H, W)`."""
