"""Networks with noisy layers, and those whose head gives a categorical distribution of the return (C51)."""
from collections.abc import Sequence
from functools import partial

import torch.nn as nn

from nervex.model.common.activation import Activation
from nervex.model.common.distribution_head import DistributionHead
from nervex.model.common.encoder import ConvEncoder, FCEncoder
from nervex.model.common.mlp import LinearType
from nervex.model.common.multi_head import one_or_many
from nervex.model.common.q_head import make_q_head
from nervex.model.common.shapes import action_heads

from .discrete_net import DiscreteNet


def linear_type(noise: bool, noise_sigma: float) -> LinearType:
    """Ordinary or noisy linear layers."""
    if not noise:
        return nn.Linear
    from nervex.torch_utils.network import NoiseLinearLayer
    return partial(NoiseLinearLayer, sigma0=noise_sigma)


class NoiseFCDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values with noisy layers in the head (Fortunato et al. 2018, https://arxiv.org/abs/1706.10295):
        exploration that is learned. The noise acts in training mode; ``reset_noise`` of the layers draws it anew.
    Arguments:
        - noise_sigma (:obj:`float`): size of the noise at the start
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`
    """

    def __init__(self, obs_dim: int | Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 64,
                 hidden_dim_list: Sequence[int] | None = None, dueling: bool = True, head_layer_num: int | None = None,
                 activation: str | Activation = 'relu', norm: bool = False, noise_sigma: float = 0.4) -> None:
        widths = [128, 128, embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        linear, layers = linear_type(True, noise_sigma), int(dueling) if head_layer_num is None else head_layer_num
        head = one_or_many(lambda n: make_q_head(widths[-1], n, dueling, layers, activation, linear),
                           action_heads(action_dim))
        super().__init__(FCEncoder(obs_dim, widths, activation, norm), head)


class NoiseDistributionFCDiscreteNet(DiscreteNet):
    """
    Overview:
        Rainbow's network for vector observations: C51 with a dueling, noisy head.
    Arguments:
        - v_min, v_max (:obj:`float`), n_atom (:obj:`int`): see ``DistributionHead``
        - noise (:obj:`bool`), noise_sigma (:obj:`float`): noisy layers in the head, and their size
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, distribution :math:`(*, A, n\\_atom)`
    """

    def __init__(self, obs_dim: int | Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 64,
                 hidden_dim_list: Sequence[int] | None = None, v_min: float = -10., v_max: float = 10.,
                 n_atom: int = 51, dueling: bool = True, head_layer_num: int = 1, activation: str | Activation = 'relu',
                 norm: bool = False, noise: bool = True, noise_sigma: float = 0.4) -> None:
        widths = [128, 128, embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        head = _c51(widths[-1], action_dim, n_atom, v_min, v_max, dueling, head_layer_num, activation,
                    linear_type(noise, noise_sigma))
        super().__init__(FCEncoder(obs_dim, widths, activation, norm), head)


class NoiseDistributionConvDiscreteNet(DiscreteNet):
    """
    Overview:
        Rainbow's network for images: C51 with a dueling, noisy head.
    Arguments:
        - see ``NoiseDistributionFCDiscreteNet`` and ``ConvDiscreteNet``
    Shapes:
        - obs :math:`(*, C, H, W)`, logit :math:`(*, A)`, distribution :math:`(*, A, n\\_atom)`
    """

    def __init__(self, obs_dim: Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 512,
                 hidden_dim_list: Sequence[int] | None = None, v_min: float = -10., v_max: float = 10.,
                 n_atom: int = 51, dueling: bool = True, head_layer_num: int = 1, activation: str | Activation = 'relu',
                 noise: bool = True, noise_sigma: float = 0.4, channels: Sequence[int] = (32, 64, 64),
                 kernels: Sequence[int] = (8, 4, 3), strides: Sequence[int] = (4, 2, 1)) -> None:
        widths = [embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        head = _c51(widths[-1], action_dim, n_atom, v_min, v_max, dueling, head_layer_num, activation,
                    linear_type(noise, noise_sigma))
        super().__init__(ConvEncoder(obs_dim, widths, channels, kernels, strides, activation), head)


def _c51(hidden_dim: int, action_dim: int | Sequence[int], n_atom: int, v_min: float, v_max: float, dueling: bool,
         layer_num: int, activation: str | Activation, linear: LinearType) -> nn.Module:
    def make_head(n: int) -> nn.Module:
        return DistributionHead(hidden_dim, n, n_atom, v_min, v_max, dueling, layer_num, activation, linear)
    return one_or_many(make_head, action_heads(action_dim))
