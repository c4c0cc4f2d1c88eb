"""Networks of action values for discrete actions: encoder and head."""
from collections.abc import Sequence
from typing import Any

import torch.nn as nn
from torch import Tensor

from nervex.model.common.activation import Activation
from nervex.model.common.encoder import ConvEncoder, FCEncoder
from nervex.model.common.multi_head import one_or_many
from nervex.model.common.q_head import make_q_head
from nervex.model.common.shapes import action_heads, obs_of


class DiscreteNet(nn.Module):
    """
    Overview:
        An encoder and a head, given as modules: what the nets below are made of.
    Arguments:
        - encoder (:obj:`nn.Module`): observation -> features
        - head (:obj:`nn.Module`): features -> dict with ``logit``
    """

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """
        Arguments:
            - data (:obj:`dict | torch.Tensor`): ``obs``, and optionally ``action_mask``, which is passed on; a bare
              tensor is the observation
        Returns:
            - output (:obj:`dict`): ``logit``, a list for several action heads
        """
        modules = self._modules  # looked up here: an attribute of a module costs five times as much
        if isinstance(data, Tensor):
            return modules['head'](modules['encoder'](data))
        output = modules['head'](modules['encoder'](obs_of(data)))
        if 'action_mask' in data:
            output['action_mask'] = data['action_mask']
        return output


def q_head(hidden_dim: int, action_dim: int | Sequence[int], dueling: bool, layer_num: int,
           activation: str | Activation) -> nn.Module:
    """The head (or heads) of a net of action values."""
    return one_or_many(lambda n: make_q_head(hidden_dim, n, dueling, layer_num, activation), action_heads(action_dim))


class FCDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values from a vector observation.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size or shape of an observation
        - action_dim (:obj:`int | Sequence[int]`): number of actions; a list makes one head for each entry
        - embedding_dim (:obj:`int`): size of the features, if ``hidden_dim_list`` is None
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the encoder; None is [128, 128, embedding_dim]
        - dueling (:obj:`bool`): dueling head, Q = V + A - mean(A)
        - head_layer_num (:obj:`int | None`): hidden layers in the head; None is 1 if dueling, else 0
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
        - norm (:obj:`bool`): LayerNorm in the encoder
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`
    """

    def __init__(self, obs_dim: int | Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 64,
                 hidden_dim_list: Sequence[int] | None = None, dueling: bool = True,
                 head_layer_num: int | None = None, activation: str | Activation = 'relu', norm: bool = False) -> None:
        widths = [128, 128, embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        layers = int(dueling) if head_layer_num is None else head_layer_num
        super().__init__(FCEncoder(obs_dim, widths, activation, norm),
                         q_head(widths[-1], action_dim, dueling, layers, activation))


class ConvDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values from images.
    Arguments:
        - obs_dim (:obj:`Sequence[int]`): [C, H, W]
        - hidden_dim_list (:obj:`Sequence[int] | None`): linear layers after the convolutions; None is [embedding_dim]
        - channels, kernels, strides (:obj:`Sequence[int]`): the convolutions
        - action_dim, dueling, head_layer_num, activation: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, C, H, W)` uint8 or float, logit :math:`(*, A)`
    """

    def __init__(self, obs_dim: Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 512,
                 hidden_dim_list: Sequence[int] | None = None, dueling: bool = True,
                 head_layer_num: int | None = None, activation: str | Activation = 'relu',
                 channels: Sequence[int] = (32, 64, 64), kernels: Sequence[int] = (8, 4, 3),
                 strides: Sequence[int] = (4, 2, 1)) -> None:
        widths = [embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        layers = int(dueling) if head_layer_num is None else head_layer_num
        super().__init__(ConvEncoder(obs_dim, widths, channels, kernels, strides, activation),
                         q_head(widths[-1], action_dim, dueling, layers, activation))
