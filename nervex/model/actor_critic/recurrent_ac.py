"""Actor-critic networks with a memory: encoder, LSTM or GRU, policy and value."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from nervex.model.common.encoder import ConvEncoder, FCEncoder
from nervex.model.common.inputs import obs_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.rnn import RNN, unrolled

from .value_ac import ValueAC, assemble, with_mask


class RecurrentValueAC(ValueAC):
    """
    Overview:
        A policy and a value over one memory. Takes a step (B, \\*) or a sequence (T, B, \\*), with ``prev_state``, and
        gives ``next_state``, both a list with one state a row; see ``RNN``.
    Interfaces:
        forward, compute_action_value, compute_action, compute_value, initial_state
    """

    encoder: Any

    def _build(self, encoder: Any, memory: tuple[str, int | None, int], *heads: Any) -> None:
        """Encoder, the memory (type, size, layers), and heads for its output."""
        kind, size, layers = memory
        rnn = RNN(encoder.out_dim, encoder.out_dim if size is None else size, kind, layers)
        assemble(self, [encoder], *heads, features=rnn.out_dim)
        self.rnn = rnn

    def forward(  # type: ignore[override]
        self, data: Tensor | dict[str, Any], mode: str | None = None
    ) -> dict[str, Any]:
        """As ``ValueAC.forward``, with ``prev_state`` and ``enable_fast_timestep`` in and ``next_state`` out."""
        if mode is not None and mode != 'compute_action_value':
            return super().forward(data, mode)
        return self.compute_action_value(data)

    def compute_action_value(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """``logit``, ``value`` and ``next_state``."""
        y, state = self._remembered(data)
        return with_mask({'logit': self.actor(y), 'value': self.critic(y).squeeze(-1), 'next_state': state}, data)

    def compute_action(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """``logit`` and ``next_state``."""
        y, state = self._remembered(data)
        return with_mask({'logit': self.actor(y), 'next_state': state}, data)

    def compute_value(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """``value`` and ``next_state``."""
        y, state = self._remembered(data)
        return {'value': self.critic(y).squeeze(-1), 'next_state': state}

    def initial_state(self) -> Any:
        """The state of one row before its first step; fits ``hidden_state(init_fn=model.initial_state)``."""
        return self.rnn.initial_state()

    def _remembered(self, data: Tensor | dict[str, Any]) -> tuple[Tensor, list[Any]]:
        obs = obs_of(data)
        given = {} if isinstance(data, Tensor) else data
        return unrolled(self.rnn, self.encoder(obs), obs, self.encoder.obs_shape, given)


class FCRValueAC(RecurrentValueAC):
    """
    Overview:
        Actor-critic with a memory over a vector observation.
    Arguments:
        - lstm_type (:obj:`str`): 'lstm' or 'gru'
        - lstm_hidden_dim (:obj:`int | None`): size of the state, None is the size of the features
        - lstm_layer_num (:obj:`int`): stacked recurrent layers
        - the others: see ``FCValueAC``
    Shapes:
        - obs :math:`(B, obs\\_dim)` or :math:`(T, B, obs\\_dim)`, logit :math:`(*, A)`, value :math:`(*)`
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
        sigma_type: str = 'independent',
        sigma: float = 1.0,
        continuous: bool | None = None,
        lstm_type: str = 'lstm',
        lstm_hidden_dim: int | None = None,
        lstm_layer_num: int = 1,
    ) -> None:
        encoder = FCEncoder(obs_dim, [128, embedding_dim] if hidden_dim_list is None else hidden_dim_list, activation)
        memory = (lstm_type, lstm_hidden_dim, lstm_layer_num)
        goes_on = continous if continuous is None else continuous
        widths = [head_hidden_dim] * head_layer_num
        self._build(encoder, memory, action_dim, goes_on, widths, activation, ortho_init, sigma_type, sigma)


class ConvRValueAC(RecurrentValueAC):
    """
    Overview:
        Actor-critic with a memory over images.
    Arguments:
        - lstm_type, lstm_hidden_dim, lstm_layer_num: see ``FCRValueAC``
        - the others: see ``ConvValueAC``
    Shapes:
        - obs :math:`(B, C, H, W)` or :math:`(T, B, C, H, W)`, logit :math:`(*, A)`, value :math:`(*)`
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
        sigma_type: str = 'independent',
        sigma: float = 1.0,
        continuous: bool | None = None,
        lstm_type: str = 'lstm',
        lstm_hidden_dim: int | None = None,
        lstm_layer_num: int = 1,
        channels: Sequence[int] = (32, 64, 64),
        kernels: Sequence[int] = (8, 4, 3),
        strides: Sequence[int] = (4, 2, 1),
    ) -> None:
        hidden = [embedding_dim] if hidden_dim_list is None else hidden_dim_list
        encoder = ConvEncoder(obs_dim, hidden, channels, kernels, strides, activation)
        memory = (lstm_type, lstm_hidden_dim, lstm_layer_num)
        goes_on = continous if continuous is None else continuous
        widths = [head_hidden_dim] * head_layer_num
        self._build(encoder, memory, action_dim, goes_on, widths, activation, ortho_init, sigma_type, sigma)
