"""Networks of action values for discrete actions: encoder, on request a memory, head."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch.nn as nn
from torch import Tensor

from nervex.model.common.inputs import obs_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.rnn import RNN, unrolled

from .parts import make_encoder, make_head


class DiscreteNet(nn.Module):
    """
    Overview:
        Any encoder with any head, with or without LSTM or GRU between them; the nets with names of their own are
        settings of this one.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size or shape of an observation
        - action_dim (:obj:`int | Sequence[int]`): number of actions; a list makes one head for each entry
        - embedding_dim (:obj:`int`): size of the features, if ``hidden_dim_list`` is None
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the encoder, see ``make_encoder``
        - dueling (:obj:`bool`): dueling head, Q = V + A - mean(A)
        - head_layer_num (:obj:`int | None`): hidden layers in the head; None is 1 if dueling, else 0
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
        - encoder_kwargs (:obj:`Mapping | None`): ``encoder_type`` 'fc' or 'conv', and arguments of that encoder
        - lstm_kwargs (:obj:`Mapping | None`): ``lstm_type`` 'none', 'lstm' or 'gru'; ``hidden_dim``, None is the size
          of the features; ``num_layers``
        - head_kwargs (:obj:`Mapping | None`): ``head_type`` 'base', 'dist', 'quantile' or 'qr'; ``noise``; arguments
          of that head
    Interfaces:
        forward, initial_state
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Sequence[int] | None = None,
        dueling: bool = True,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        encoder_kwargs: Mapping[str, Any] | None = None,
        lstm_kwargs: Mapping[str, Any] | None = None,
        head_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        encoder: Any = make_encoder(obs_dim, embedding_dim, hidden_dim_list, activation, **(encoder_kwargs or {}))
        self.encoder = encoder
        lstm = dict(lstm_kwargs or {})
        self.rnn: Any = None
        features = encoder.out_dim
        if lstm.get('lstm_type', 'none') != 'none':
            hidden_dim = lstm.pop('hidden_dim', None)
            self.rnn = RNN(features, features if hidden_dim is None else hidden_dim, **lstm)
            features = self.rnn.out_dim
        self.head = make_head(features, action_dim, dueling, head_layer_num, activation, **(head_kwargs or {}))

    def forward(self, data: Tensor | dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """
        Arguments:
            - data (:obj:`dict | torch.Tensor`): ``obs``; optionally ``action_mask``, which is passed on; with a memory
              also ``prev_state``, see ``RNN``, and ``enable_fast_timestep`` (:obj:`bool`), which says that a sequence
              (T, B, *) is meant rather than a step (B, *). A bare tensor is the observation
            - kwargs: arguments of the head's forward, e.g. ``num_quantiles``
        Returns:
            - output (:obj:`dict`): ``logit`` and what else the head gives, lists for several heads; with a memory
              ``next_state``, a list of B states
        """
        modules: dict[str, Any] = self._modules  # looked up here: an attribute of a module costs five times as much
        obs = obs_of(data)
        x = modules['encoder'](obs)
        if self.rnn is not None:
            return self._with_memory(x, obs, {} if isinstance(data, Tensor) else data, kwargs)
        output = modules['head'](x, **kwargs) if kwargs else modules['head'](x)
        if not isinstance(data, Tensor) and 'action_mask' in data:
            output['action_mask'] = data['action_mask']
        return output

    def initial_state(self) -> Any:
        """The state of one row before its first step; fits ``hidden_state(init_fn=model.initial_state)``."""
        return None if self.rnn is None else self.rnn.initial_state()

    def _with_memory(self, x: Tensor, obs: Tensor, data: dict[str, Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        y, next_state = unrolled(self.rnn, x, obs, self.encoder.obs_shape, data)
        output = self.head(y, **kwargs)
        output['next_state'] = next_state
        if 'action_mask' in data:
            output['action_mask'] = data['action_mask']
        return output
