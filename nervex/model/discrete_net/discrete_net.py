"""Networks of action values for discrete actions: encoder, on request a memory, head."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.encoder import conv, fc, make_encoder
from nervex.model.common.heads import DistributionHead, MultiHead, QuantileHead, QuantileRegressionHead
from nervex.model.common.modes import action_heads, obs_of, with_mask
from nervex.model.common.named import memory, named_net, settings_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import Layers, NoiseLinearLayer
from nervex.torch_utils.network.rnn import RNN, unrolled
from nervex.utils.registry_factory import HEAD_REGISTRY


class DiscreteNet(nn.Module):
    """
    Overview:
        Any encoder with any head, with or without LSTM or GRU between them; the nets with names of their own are
        settings of this one.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size or shape of an observation
        - action_dim (:obj:`int | Sequence[int]`): number of actions; a list makes one head for each entry
        - embedding_dim (:obj:`int`): size of the features, if ``hidden_dim_list`` is None
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the encoder; None is [128, 128, embedding_dim], and
          [embedding_dim] behind convolutions
        - dueling (:obj:`bool`): dueling head, Q = V + A - mean(A)
        - head_layer_num (:obj:`int | None`): hidden layers in the head; None is 1 if dueling, else 0
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
        - encoder_kwargs (:obj:`Mapping | None`): ``encoder_type`` 'fc' or 'conv', and arguments of that encoder
        - lstm_kwargs (:obj:`Mapping | None`): ``lstm_type`` 'none', 'lstm' or 'gru'; ``hidden_dim``, None is the size
          of the features; ``num_layers``
        - head_kwargs (:obj:`Mapping | None`): ``head_type``, a name in ``HEAD_REGISTRY``: 'base', 'dist', 'quantile',
          'qr'; ``noise``; arguments of that head
    Interfaces:
        forward, initial_state
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Layers | None = None,
        dueling: bool = True,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        encoder_kwargs: Mapping[str, Any] | None = None,
        lstm_kwargs: Mapping[str, Any] | None = None,
        head_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        encoder = make_encoder(
            obs_dim, embedding_dim, hidden_dim_list, (128, 128), activation, **(encoder_kwargs or {})
        )
        self.encoder: Any = encoder
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
        if self.rnn is None:
            return with_mask(modules['head'](x, **kwargs) if kwargs else modules['head'](x), data)
        y, state = unrolled(self.rnn, x, obs, self.encoder.obs_shape, {} if isinstance(data, Tensor) else data)
        return with_mask({**self.head(y, **kwargs), 'next_state': state}, data)

    def initial_state(self) -> Any:
        """The state of one row before its first step; fits ``hidden_state(init_fn=model.initial_state)``."""
        return None if self.rnn is None else self.rnn.initial_state()


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
        - head_type (:obj:`str | type`): 'base' (values), 'dist' (C51), 'quantile' (IQN), 'qr' (QR-DQN), another name in
          ``HEAD_REGISTRY``, or a class with the arguments of ``DistributionHead``
        - noise (:obj:`bool`), noise_sigma (:obj:`float`): noisy linear layers, and how noisy they start
        - kwargs: further arguments of that class, e.g. ``n_atom``
    """
    build: Any = HEAD_REGISTRY.get(head_type) if isinstance(head_type, str) else head_type
    layers = int(dueling) if layer_num is None else layer_num
    linear = partial(NoiseLinearLayer, sigma0=noise_sigma) if noise else nn.Linear
    settings = {'dueling': dueling, 'layer_num': layers, 'activation': activation, 'linear': linear, **kwargs}
    heads = action_heads(action_dim)
    make = partial(build, hidden_dim, **settings)
    return make(heads) if isinstance(heads, int) else MultiHead(make, heads)


# ---- named nets: FC or Conv by the encoder, R with a memory, Noise with noisy layers in the head ----
_IMAGES = {'embedding_dim': 512}
_NOISE = {make_head: 'noise noise_sigma'}
_noisy = settings_of({make_head: 'noise_sigma'}, noise=True)
_c51 = settings_of({DistributionHead: 'v_min v_max n_atom', **_NOISE}, {'noise': True}, head_type='dist')
_cosines = 'num_quantiles quantile_embedding_dim beta_function_type beta_eta'
_iqn = settings_of({QuantileHead: _cosines, **_NOISE}, {'noise': True}, head_type='quantile')
_qr = settings_of({QuantileRegressionHead: 'num_quantiles'}, head_type='qr')


@named_net(encoder_kwargs=fc)
class FCDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values from a vector observation.
    Arguments:
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the encoder; None is [128, 128, embedding_dim]
        - norm (:obj:`bool`): LayerNorm in the encoder
        - the others: see ``DiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`
    """


@named_net(_IMAGES, encoder_kwargs=conv)
class ConvDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values from images.
    Arguments:
        - obs_dim (:obj:`Sequence[int]`): [C, H, W]
        - hidden_dim_list (:obj:`Sequence[int] | None`): linear layers after the convolutions; None is [embedding_dim]
        - channels, kernels, strides (:obj:`Sequence[int]`): the convolutions
        - the others: see ``DiscreteNet``
    Shapes:
        - obs :math:`(*, C, H, W)` uint8 or float, logit :math:`(*, A)`
    """


@named_net(encoder_kwargs=fc, lstm_kwargs=memory)
class FCRDiscreteNet(DiscreteNet):
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


@named_net(_IMAGES, encoder_kwargs=conv, lstm_kwargs=memory)
class ConvRDiscreteNet(DiscreteNet):
    """``FCRDiscreteNet`` for images: with the encoder of ``ConvDiscreteNet``, obs :math:`([T], B, C, H, W)`."""


@named_net(encoder_kwargs=fc, head_kwargs=_noisy)
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


@named_net(encoder_kwargs=fc, head_kwargs=_c51)
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


@named_net(_IMAGES, encoder_kwargs=conv, head_kwargs=_c51)
class NoiseDistributionConvDiscreteNet(DiscreteNet):
    """``NoiseDistributionFCDiscreteNet`` for images, with the encoder of ``ConvDiscreteNet``."""


@named_net(encoder_kwargs=fc, head_kwargs=_iqn)
class NoiseQuantileFCDiscreteNet(DiscreteNet):
    """
    Overview:
        Implicit quantile network (IQN) for vector observations, with a dueling, noisy head. ``forward`` takes
        ``num_quantiles`` for another number of draws than the net's own.
    Arguments:
        - num_quantiles, quantile_embedding_dim, beta_function_type, beta_eta: see ``QuantileHead``
        - noise (:obj:`bool`), noise_sigma (:obj:`float`): noisy layers in the head, and their size
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, q :math:`(\\tau, *, A)`, quantiles :math:`(\\tau B, 1)`
    """


@named_net(_IMAGES, encoder_kwargs=conv, head_kwargs=_iqn)
class NoiseQuantileConvDiscreteNet(DiscreteNet):
    """``NoiseQuantileFCDiscreteNet`` for images, with the encoder of ``ConvDiscreteNet``."""


@named_net({'dueling': False}, encoder_kwargs=fc, head_kwargs=_qr)
class QRFCDiscreteNet(DiscreteNet):
    """
    Overview:
        Quantile regression network (QR-DQN) for vector observations.
    Arguments:
        - num_quantiles (:obj:`int`): see ``QuantileRegressionHead``
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, q :math:`(*, A, num\\_quantiles)`,
          tau :math:`(*, num\\_quantiles, 1)`
    """


@named_net({'dueling': False, **_IMAGES}, encoder_kwargs=conv, head_kwargs=_qr)
class QRConvDiscreteNet(DiscreteNet):
    """``QRFCDiscreteNet`` for images, with the encoder of ``ConvDiscreteNet``."""


class SQNDiscreteNet(nn.Module):
    """
    Overview:
        Two (or one) independent networks of action values; ``logit`` is their minimum, from which actions are taken.
    Arguments:
        - use_twin_q (:obj:`bool`): two networks, as the algorithm needs (https://arxiv.org/abs/1912.10891), or one
        - the others: see ``DiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, or a list for several heads; q_value: a list with one such
          entry a network
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Layers | None = None,
        dueling: bool = False,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        use_twin_q: bool = True,
        encoder_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        sizes = (obs_dim, action_dim, embedding_dim, hidden_dim_list, dueling, head_layer_num, activation)
        self.nets = nn.ModuleList(DiscreteNet(*sizes, encoder_kwargs) for _ in range(2 if use_twin_q else 1))

    def forward(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """The outputs that the class describes."""
        outputs = [net(data) for net in self.nets]
        q = [output['logit'] for output in outputs]
        if isinstance(q[0], list):
            least: Any = [heads[0] if len(heads) == 1 else torch.minimum(*heads) for heads in zip(*q)]
        else:
            least = q[0] if len(q) == 1 else torch.minimum(*q)
        return {**outputs[0], 'logit': least, 'q_value': q}


@named_net(_IMAGES, encoder_kwargs=conv)
class ConvSQNDiscreteNet(SQNDiscreteNet):
    """``SQNDiscreteNet`` for images, with the encoder of ``ConvDiscreteNet`` in each network."""
