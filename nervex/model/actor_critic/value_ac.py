"""Actor-critic networks: a policy and a state value from one observation."""

from collections.abc import Sequence
from typing import Any

import torch.nn as nn
from torch import Tensor

from nervex.model.common.encoder import ConvEncoder, FCEncoder
from nervex.model.common.initialise import orthogonal, orthogonal_out
from nervex.model.common.inputs import obs_of
from nervex.model.common.modes import ActorCriticBase
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import mlp
from nervex.utils.errors import UnknownNameError, unknown_name

from .policy_head import policy_head


class ValueAC(ActorCriticBase):
    """
    Overview:
        A policy and a value over one encoder, or over an encoder each.
    Interfaces:
        forward, compute_action_value, compute_action, compute_value
    """

    modes = ('compute_action_value', 'compute_action', 'compute_value')

    def __init__(
        self, encoder: nn.Module, actor: nn.Module, critic: nn.Module, critic_encoder: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.critic_encoder = critic_encoder
        self.actor = actor
        self.critic = critic

    def forward(  # type: ignore[override]
        self, data: Tensor | dict[str, Any], mode: str | None = None
    ) -> dict[str, Any]:
        """
        Arguments:
            - data (:obj:`dict | torch.Tensor`): ``obs``, and optionally ``action_mask``, which is passed on; a bare
              tensor is the observation
            - mode (:obj:`str | None`): None and 'compute_action_value' give both outputs, 'compute_action' the logit
              only, 'compute_value' the value only
        Returns:
            - output (:obj:`dict`): ``logit`` (a list for several heads, a pair (mu, sigma) for continuous actions)
              and ``value``
        """
        if mode is not None and mode != 'compute_action_value':
            if mode not in self.modes:
                raise UnknownNameError(unknown_name('mode', mode, self.modes))
            return getattr(self, mode)(data)
        modules: dict[str, Any] = self._modules  # looked up here: an attribute of a module costs five times as much
        obs = obs_of(data)
        x = modules['encoder'](obs)
        critic_encoder = self.critic_encoder
        value = modules['critic'](x if critic_encoder is None else critic_encoder(obs)).squeeze(-1)
        return with_mask({'logit': modules['actor'](x), 'value': value}, data)

    def compute_action_value(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """Policy and value in one pass over a shared encoder: what forward does without a mode."""
        return ValueAC.forward(self, data)

    def compute_action(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """The policy alone."""
        return with_mask({'logit': self.actor(self.encoder(obs_of(data)))}, data)

    def compute_value(self, data: Tensor | dict[str, Any]) -> dict[str, Tensor]:
        """The value alone."""
        encoder = self.encoder if self.critic_encoder is None else self.critic_encoder
        return {'value': self.critic(encoder(obs_of(data))).squeeze(-1)}


def with_mask(output: dict[str, Any], data: Tensor | dict[str, Any]) -> dict[str, Any]:
    """The output, with the action mask of the input where it has one."""
    if not isinstance(data, Tensor) and 'action_mask' in data:
        output['action_mask'] = data['action_mask']
    return output


class FCValueAC(ValueAC):
    """
    Overview:
        Actor-critic over a vector observation.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size or shape of an observation
        - action_dim (:obj:`int | Sequence[int]`): number of actions; a list makes one head for each entry; for
          continuous actions their dimension
        - embedding_dim (:obj:`int`): size of the features, if ``hidden_dim_list`` is None
        - head_hidden_dim (:obj:`int`), head_layer_num (:obj:`int`): hidden layers of actor and critic head
        - continous (:obj:`bool`): continuous actions; ``continuous`` is the same switch
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the encoder; None is [128, embedding_dim]
        - share_encoder (:obj:`bool`): one encoder for both, or one each
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
        - ortho_init (:obj:`bool`): orthogonal weights, gain sqrt(2); policy output 0.01, value output 1
        - sigma_type, sigma: see ``GaussianHead``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, value :math:`(*)`
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
        share_encoder: bool = True,
        activation: str | Activation = 'relu',
        ortho_init: bool = False,
        sigma_type: str = 'independent',
        sigma: float = 1.0,
        continuous: bool | None = None,
    ) -> None:
        hidden = [128, embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        encoders = [FCEncoder(obs_dim, hidden, activation) for _ in range(1 if share_encoder else 2)]
        assemble(
            self,
            encoders,
            action_dim,
            continous if continuous is None else continuous,
            [head_hidden_dim] * head_layer_num,
            activation,
            ortho_init,
            sigma_type,
            sigma,
        )


class ConvValueAC(ValueAC):
    """
    Overview:
        Actor-critic over images.
    Arguments:
        - obs_dim (:obj:`Sequence[int]`): [C, H, W]
        - hidden_dim_list (:obj:`Sequence[int] | None`): linear layers after the convolutions; None is [embedding_dim]
        - channels, kernels, strides (:obj:`Sequence[int]`): the convolutions
        - the others: see ``FCValueAC``
    Shapes:
        - obs :math:`(*, C, H, W)` uint8 or float, logit :math:`(*, A)`, value :math:`(*)`
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
        share_encoder: bool = True,
        activation: str | Activation = 'relu',
        ortho_init: bool = False,
        sigma_type: str = 'independent',
        sigma: float = 1.0,
        continuous: bool | None = None,
        channels: Sequence[int] = (32, 64, 64),
        kernels: Sequence[int] = (8, 4, 3),
        strides: Sequence[int] = (4, 2, 1),
    ) -> None:
        hidden = [embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        encoders = [
            ConvEncoder(obs_dim, hidden, channels, kernels, strides, activation)
            for _ in range(1 if share_encoder else 2)
        ]
        assemble(
            self,
            encoders,
            action_dim,
            continous if continuous is None else continuous,
            [head_hidden_dim] * head_layer_num,
            activation,
            ortho_init,
            sigma_type,
            sigma,
        )


def assemble(
    net: ValueAC,
    encoders: Sequence[Any],
    action_dim: int | Sequence[int],
    continuous: bool,
    widths: Sequence[int],
    activation: str | Activation,
    ortho_init: bool,
    sigma_type: str,
    sigma: float,
    features: int | None = None,
) -> None:
    """Build heads for the encoders, or for so many features behind them, and fill ``net`` with all of it."""
    sizes = [encoder.out_dim if features is None else features for encoder in (encoders[0], encoders[-1])]
    actor = policy_head(sizes[0], action_dim, continuous, widths, activation, ortho_init, sigma_type, sigma)
    critic = mlp(sizes[1], widths, 1, activation)
    if ortho_init:
        orthogonal_out(critic, 1.0)
        for encoder in encoders:
            orthogonal(encoder)
    ValueAC.__init__(net, encoders[0], actor, critic, encoders[1] if len(encoders) == 2 else None)
