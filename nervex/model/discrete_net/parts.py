"""Encoders and heads of discrete nets by name."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch.nn as nn

from nervex.model.common.distribution_head import DistributionHead, QuantileHead, QuantileRegressionHead
from nervex.model.common.encoder import ConvEncoder, FCEncoder
from nervex.model.common.inputs import action_heads
from nervex.model.common.multi_head import one_or_many
from nervex.model.common.q_head import make_q_head
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import LinearType
from nervex.torch_utils.network.noisy import NoiseLinearLayer
from nervex.utils.errors import UnknownNameError, unknown_name

_ENCODERS = {'fc': FCEncoder, 'conv': ConvEncoder}
_HEADS = {'base': make_q_head, 'dist': DistributionHead, 'quantile': QuantileHead, 'qr': QuantileRegressionHead}


def make_encoder(
    obs_dim: int | Sequence[int],
    embedding_dim: int,
    hidden_dim_list: Sequence[int] | None,
    activation: str | Activation,
    encoder_type: str | type = 'fc',
    **kwargs: Any,
) -> nn.Module:
    """
    Overview:
        The encoder of an observation.
    Arguments:
        - embedding_dim (:obj:`int`): size of the features, if ``hidden_dim_list`` is None
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the linear layers; None is [128, 128, embedding_dim]
          for 'fc' and [embedding_dim] after the convolutions of 'conv'
        - encoder_type (:obj:`str | type`): 'fc', 'conv', or a class with the arguments of ``FCEncoder`` and its
          attributes ``out_dim`` and ``obs_shape``
        - kwargs: further arguments of that class
    """
    if isinstance(encoder_type, str) and encoder_type not in _ENCODERS:
        raise UnknownNameError(unknown_name('encoder_type', encoder_type, _ENCODERS))
    widths = hidden_dim_list
    if widths is None:
        widths = [embedding_dim] if encoder_type == 'conv' else [128, 128, embedding_dim]
    build: Any = _ENCODERS[encoder_type] if isinstance(encoder_type, str) else encoder_type
    return build(obs_dim, list(widths), activation=activation, **kwargs)


def make_head(
    hidden_dim: int,
    action_dim: int | Sequence[int],
    dueling: bool,
    layer_num: int | None,
    activation: str | Activation,
    head_type: str | type = 'base',
    noise: bool = False,
    noise_sigma: float = 0.4,
    **kwargs: Any,
) -> nn.Module:
    """
    Overview:
        The head, or one for each entry of ``action_dim``.
    Arguments:
        - layer_num (:obj:`int | None`): hidden layers in the head; None is 1 if dueling, else 0
        - head_type (:obj:`str | type`): 'base' (values), 'dist' (C51), 'quantile' (IQN), 'qr' (QR-DQN), or a class with
          the arguments of ``DistributionHead``
        - noise (:obj:`bool`), noise_sigma (:obj:`float`): noisy linear layers, and how noisy they start
        - kwargs: further arguments of that class, e.g. ``n_atom``
    """
    if isinstance(head_type, str) and head_type not in _HEADS:
        raise UnknownNameError(unknown_name('head_type', head_type, _HEADS))
    build: Any = _HEADS[head_type] if isinstance(head_type, str) else head_type
    layers = int(dueling) if layer_num is None else layer_num
    settings = {'dueling': dueling, 'layer_num': layers, 'activation': activation, **kwargs}
    return one_or_many(
        lambda n: build(hidden_dim, n, linear=linear_type(noise, noise_sigma), **settings), action_heads(action_dim)
    )


def linear_type(noise: bool, noise_sigma: float) -> LinearType:
    """Ordinary or noisy linear layers."""
    return partial(NoiseLinearLayer, sigma0=noise_sigma) if noise else nn.Linear
