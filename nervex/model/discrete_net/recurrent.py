"""Networks of action values with a memory: encoder, LSTM or GRU, head."""
from collections.abc import Sequence
from typing import Any

import torch.nn as nn
from torch import Tensor

from nervex.model.common.activation import Activation
from nervex.model.common.encoder import ConvEncoder, FCEncoder
from nervex.model.common.rnn import RNN
from nervex.model.common.shapes import InputShapeError, obs_of

from .discrete_net import q_head


class RDiscreteNet(nn.Module):
    """
    Overview:
        Encoder, recurrent layer and head. One step (B, *) or a whole sequence (T, B, *), told apart by the number of
        axes; ``enable_fast_timestep`` says that a sequence is meant.
    Interfaces:
        forward, initial_state
    """

    def __init__(self, encoder: Any, rnn: RNN, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.rnn = rnn
        self.head = head

    def forward(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """
        Arguments:
            - data (:obj:`dict | torch.Tensor`): ``obs``; ``prev_state``, see ``RNN``; ``enable_fast_timestep``
              (:obj:`bool`); ``action_mask``, which is passed on
        Returns:
            - output (:obj:`dict`): ``logit`` (B, A) or (T, B, A); ``next_state``, a list of B states
        """
        obs, options = obs_of(data), {} if isinstance(data, Tensor) else data
        rank = len(self.encoder.obs_shape)
        if obs.dim() not in (rank + 1, rank + 2) or (options.get('enable_fast_timestep') and obs.dim() != rank + 2):
            shape = ', '.join(map(str, self.encoder.obs_shape))
            raise InputShapeError(f'obs of shape {tuple(obs.shape)} does not fit: expected (B, {shape}), or '
                                  f'(T, B, {shape}) for a sequence (enable_fast_timestep)')
        one_step = obs.dim() == rank + 1
        x = self.encoder(obs)
        x, next_state = self.rnn(x.unsqueeze(0) if one_step else x, options.get('prev_state'))
        output = self.head(x.squeeze(0) if one_step else x)
        output['next_state'] = next_state
        if 'action_mask' in options:
            output['action_mask'] = options['action_mask']
        return output

    def initial_state(self) -> Any:
        """The state of one row before its first step; fits ``hidden_state(init_fn=model.initial_state)``."""
        return self.rnn.initial_state()


class FCRDiscreteNet(RDiscreteNet):
    """
    Overview:
        Action values from a sequence of vector observations.
    Arguments:
        - lstm_type (:obj:`str`): 'lstm' or 'gru'
        - lstm_hidden_dim (:obj:`int | None`): size of the state, None is the size of the features
        - lstm_layer_num (:obj:`int`): stacked recurrent layers
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(B, obs\\_dim)` or :math:`(T, B, obs\\_dim)`, logit :math:`(B, A)` or :math:`(T, B, A)`
    """

    def __init__(self, obs_dim: int | Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 64,
                 hidden_dim_list: Sequence[int] | None = None, dueling: bool = True, head_layer_num: int | None = None,
                 activation: str | Activation = 'relu', norm: bool = False, lstm_type: str = 'lstm',
                 lstm_hidden_dim: int | None = None, lstm_layer_num: int = 1) -> None:
        widths = [128, 128, embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        rnn = RNN(widths[-1], lstm_hidden_dim or widths[-1], lstm_type, lstm_layer_num)
        layers = int(dueling) if head_layer_num is None else head_layer_num
        super().__init__(FCEncoder(obs_dim, widths, activation, norm), rnn,
                         q_head(rnn.out_dim, action_dim, dueling, layers, activation))


class ConvRDiscreteNet(RDiscreteNet):
    """
    Overview:
        Action values from a sequence of images.
    Arguments:
        - channels, kernels, strides (:obj:`Sequence[int]`): the convolutions
        - the others: see ``ConvDiscreteNet`` and ``FCRDiscreteNet``
    Shapes:
        - obs :math:`(B, C, H, W)` or :math:`(T, B, C, H, W)`, logit :math:`(B, A)` or :math:`(T, B, A)`
    """

    def __init__(self, obs_dim: Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 512,
                 hidden_dim_list: Sequence[int] | None = None, dueling: bool = True, head_layer_num: int | None = None,
                 activation: str | Activation = 'relu', lstm_type: str = 'lstm', lstm_hidden_dim: int | None = None,
                 lstm_layer_num: int = 1, channels: Sequence[int] = (32, 64, 64), kernels: Sequence[int] = (8, 4, 3),
                 strides: Sequence[int] = (4, 2, 1)) -> None:
        widths = [embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        rnn = RNN(widths[-1], lstm_hidden_dim or widths[-1], lstm_type, lstm_layer_num)
        layers = int(dueling) if head_layer_num is None else head_layer_num
        super().__init__(ConvEncoder(obs_dim, widths, channels, kernels, strides, activation), rnn,
                         q_head(rnn.out_dim, action_dim, dueling, layers, activation))
