"""Actor-critic networks: a policy and a state value from one observation, with or without a memory."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch.nn as nn
from torch import Tensor

from nervex.model.common.encoder import conv, make_encoder
from nervex.model.common.heads import orthogonal, orthogonal_out, policy_head
from nervex.model.common.modes import ActorCriticBase, obs_of, with_mask
from nervex.model.common.named import memory, named_net
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import Layers, mlp
from nervex.torch_utils.network.rnn import RNN, unrolled


class ValueAC(ActorCriticBase):
    """
    Overview:
        A policy and a value over one encoder, or over an encoder each; the nets with names of their own are settings
        of this one.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size or shape of an observation
        - action_dim (:obj:`int | Sequence[int]`): number of actions; a list makes one head for each entry; for
          continuous actions their dimension
        - embedding_dim (:obj:`int`): size of the features, if ``hidden_dim_list`` is None
        - head_hidden_dim (:obj:`int`), head_layer_num (:obj:`int`): hidden layers of actor and critic head
        - continous (:obj:`bool`): continuous actions; ``continuous`` is the same switch
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the encoder; None is [128, embedding_dim], and
          [embedding_dim] behind convolutions
        - share_encoder (:obj:`bool`): one encoder for both, or one each
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
        - ortho_init (:obj:`bool`): orthogonal weights, gain sqrt(2); policy output 0.01, value output 1
        - sigma_type, sigma: see ``GaussianHead``
        - encoder_kwargs, lstm_kwargs (:obj:`Mapping | None`): see ``DiscreteNet``
    Interfaces:
        forward, compute_action_value, compute_action, compute_value
    """

    modes = ('compute_action_value', 'compute_action', 'compute_value')

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        head_hidden_dim: int = 128,
        continous: bool = False,
        hidden_dim_list: Layers | None = None,
        head_layer_num: int = 1,
        share_encoder: bool = True,
        activation: str | Activation = 'relu',
        ortho_init: bool = False,
        sigma_type: str = 'independent',
        sigma: float = 1.0,
        continuous: bool | None = None,
        encoder_kwargs: Mapping[str, Any] | None = None,
        lstm_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        encoders = [
            make_encoder(obs_dim, embedding_dim, hidden_dim_list, (128,), activation, **(encoder_kwargs or {}))
            for _ in range(1 if share_encoder else 2)
        ]
        features, rnn = encoders[0].out_dim, None
        if lstm_kwargs is not None:
            lstm = dict(lstm_kwargs)
            hidden_dim = lstm.pop('hidden_dim')
            rnn = RNN(features, features if hidden_dim is None else hidden_dim, **lstm)
            features = rnn.out_dim
        widths, goes_on = [head_hidden_dim] * head_layer_num, continous if continuous is None else continuous
        actor = policy_head(features, action_dim, goes_on, widths, activation, ortho_init, sigma_type, sigma)
        critic = mlp(features, widths, 1, activation)
        if ortho_init:
            orthogonal_out(critic, 1.0)
            for encoder in encoders:
                orthogonal(encoder)
        self.encoder: Any = encoders[0]
        self.critic_encoder: Any = None if share_encoder else encoders[1]
        self.actor, self.critic = actor, critic
        if rnn is not None:
            self.rnn = rnn

    def compute_action_value(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """
        Overview:
            Policy and value in one pass over a shared encoder: what forward does without a mode.
        Arguments:
            - data (:obj:`dict | torch.Tensor`): ``obs``, and optionally ``action_mask``, which is passed on; a bare
              tensor is the observation
        Returns:
            - output (:obj:`dict`): ``logit`` (a list for several heads, a pair (mu, sigma) for continuous actions)
              and ``value``
        """
        x, more = self._encoded(data, self.encoder)
        y = x if self.critic_encoder is None else self._encoded(data, self.critic_encoder)[0]
        return with_mask({'logit': self.actor(x), 'value': self.critic(y).squeeze(-1), **more}, data)

    def compute_action(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """The policy alone."""
        x, more = self._encoded(data, self.encoder)
        return with_mask({'logit': self.actor(x), **more}, data)

    def compute_value(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """The value alone."""
        y, more = self._encoded(data, self.encoder if self.critic_encoder is None else self.critic_encoder)
        return {'value': self.critic(y).squeeze(-1), **more}

    def _encoded(self, data: Tensor | dict[str, Any], encoder: nn.Module) -> tuple[Tensor, dict[str, Any]]:
        """The features, and what else belongs into the output."""
        return encoder(obs_of(data)), {}


class RecurrentValueAC(ValueAC):
    r"""
    Overview:
        A policy and a value over one memory. Takes a step (B, \*) or a sequence (T, B, \*), with ``prev_state`` and
        ``enable_fast_timestep``, and gives ``next_state``; states are lists with one a row, see ``RNN``.
    Interfaces:
        forward, compute_action_value, compute_action, compute_value, initial_state
    """

    def initial_state(self) -> Any:
        """The state of one row before its first step; fits ``hidden_state(init_fn=model.initial_state)``."""
        return self.rnn.initial_state()

    def _encoded(self, data: Tensor | dict[str, Any], encoder: nn.Module) -> tuple[Tensor, dict[str, Any]]:
        obs = obs_of(data)
        given = {} if isinstance(data, Tensor) else data
        y, state = unrolled(self.rnn, encoder(obs), obs, self.encoder.obs_shape, given)
        return y, {'next_state': state}


@named_net()
class FCValueAC(ValueAC):
    """
    Overview:
        Actor-critic over a vector observation.
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, value :math:`(*)`
    """


@named_net({'embedding_dim': 512}, encoder_kwargs=conv)
class ConvValueAC(ValueAC):
    """
    Overview:
        Actor-critic over images.
    Arguments:
        - obs_dim (:obj:`Sequence[int]`): [C, H, W]
        - hidden_dim_list (:obj:`Sequence[int] | None`): linear layers after the convolutions; None is [embedding_dim]
        - channels, kernels, strides (:obj:`Sequence[int]`): the convolutions
        - the others: see ``ValueAC``
    Shapes:
        - obs :math:`(*, C, H, W)` uint8 or float, logit :math:`(*, A)`, value :math:`(*)`
    """


@named_net(lstm_kwargs=memory, share_encoder=True)
class FCRValueAC(RecurrentValueAC):
    """
    Overview:
        Actor-critic with a memory over a vector observation.
    Arguments:
        - lstm_type (:obj:`str`): 'lstm' or 'gru'
        - lstm_hidden_dim (:obj:`int | None`): size of the state, None is the size of the features
        - lstm_layer_num (:obj:`int`): stacked recurrent layers
        - the others: see ``ValueAC``
    Shapes:
        - obs :math:`(B, obs\\_dim)` or :math:`(T, B, obs\\_dim)`, logit :math:`(*, A)`, value :math:`(*)`
    """


@named_net({'embedding_dim': 512}, lstm_kwargs=memory, encoder_kwargs=conv, share_encoder=True)
class ConvRValueAC(RecurrentValueAC):
    """``FCRValueAC`` for images: with the encoder of ``ConvValueAC``, obs :math:`([T], B, C, H, W)`."""
