"""Encoders: an observation becomes a feature vector."""

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.named import settings_of
from nervex.torch_utils.network.activation import Activation, get_activation
from nervex.torch_utils.network.mlp import MLP, Layers, LinearType, as_layers
from nervex.torch_utils.network.shapes import InputShapeError, KnowsDtype, as_dtype, as_shape, misfit
from nervex.utils.errors import UnknownNameError, unknown_name


class FCEncoder(MLP):
    """
    Overview:
        Linear layers over a vector observation; an observation of a higher rank is flattened.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size or shape of one observation
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the layers
        - activation, norm, linear: see ``MLP``
    Shapes:
        - input :math:`(*, obs\\_dim)` of any dtype, output :math:`(*, hidden\\_dim\\_list[-1])`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        hidden_dim_list: Layers = (128, 128, 64),
        activation: str | Activation = 'relu',
        norm: bool = False,
        linear: LinearType = nn.Linear,
    ) -> None:
        if not hidden_dim_list:
            raise ValueError('hidden_dim_list needs at least one width')
        super().__init__(obs_dim, hidden_dim_list, None, activation, norm, linear, name='obs')
        self.obs_shape = self.in_shape


class ConvEncoder(KnowsDtype):
    """
    Overview:
        Convolutions over an image observation and linear layers over the flattened result (by default the network of
        Mnih et al. 2015, https://www.nature.com/articles/nature14236). Bytes become floats between 0 and 1 in here.
    Arguments:
        - obs_dim (:obj:`Sequence[int]`): [C, H, W] or [H, W, C]
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the linear layers after the convolutions
        - channels, kernels, strides (:obj:`Sequence[int]`): one entry for each convolution
        - activation (:obj:`str | Callable`): after each layer
        - linear: see ``MLP``
        - layout (:obj:`str`): 'chw', 'hwc', or 'auto': channels come last where the last axis is the shortest
        - bfloat16 (:obj:`bool`): convolve in bfloat16, up to twice as fast on processors with instructions for it \
            (all of PPO's training on Pong 1.4 times); weights and results stay as they are
    Shapes:
        - input :math:`(*, C, H, W)` or :math:`(*, H, W, C)` uint8 or float, output :math:`(*, hidden\\_dim\\_list[-1])`
    """

    def __init__(
        self,
        obs_dim: Sequence[int],
        hidden_dim_list: Layers = (512,),
        channels: Sequence[int] = (32, 64, 64),
        kernels: Sequence[int] = (8, 4, 3),
        strides: Sequence[int] = (4, 2, 1),
        activation: str | Activation = 'relu',
        linear: LinearType = nn.Linear,
        layout: str = 'auto',
        bfloat16: bool = False,
    ) -> None:
        super().__init__()
        self.obs_shape = as_shape(obs_dim)
        if len(self.obs_shape) != 3:
            raise ValueError(f'a Conv net takes images, obs_dim = [C, H, W], got {obs_dim!r}; vectors go to an FC net')
        if layout not in ('auto', 'chw', 'hwc'):
            raise ValueError(f"layout: 'auto', 'chw' or 'hwc', got {layout!r}")
        self._last = layout == 'hwc' or (layout == 'auto' and channels_last(self.obs_shape))
        shape = self.obs_shape[2:] + self.obs_shape[:2] if self._last else self.obs_shape
        if not len(channels) == len(kernels) == len(strides) or not channels:
            raise ValueError(f'channels {channels}, kernels {kernels}, strides {strides}: one entry for each layer')
        sizes = [shape[0], *channels]
        self.convs = nn.ModuleList(nn.Conv2d(i, o, k, s) for i, o, k, s in zip(sizes, sizes[1:], kernels, strides))
        height, width = shape[1:]
        for kernel, stride in zip(kernels, strides):
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
            if min(height, width) < 1:
                raise ValueError(
                    f'images of {shape[1]}x{shape[2]} are too small for kernels '
                    f'{tuple(kernels)} with strides {tuple(strides)}; give smaller ones'
                )
        self.fc = MLP(channels[-1] * height * width, hidden_dim_list, None, activation, linear=linear)
        self.out_dim = self.fc.out_dim
        self._act = get_activation(activation)
        self.weights_dtype = next(self.parameters()).dtype
        self._short = bfloat16

    def forward(self, obs: Tensor) -> Tensor:
        """Encode images."""
        if not isinstance(obs, Tensor):
            as_dtype(obs, self.weights_dtype)  # says so
        if obs.shape[-3:] != self.obs_shape:
            error = misfit(obs, self.obs_shape)
            swapped = obs.shape[-3:] == self.obs_shape[1:] + self.obs_shape[:1]
            raise InputShapeError(f'{error}; channels come first: movedim(-1, -3)') if swapped else error
        lead = obs.shape[:-3]
        x, act = obs if len(lead) == 1 else obs.reshape(-1, *self.obs_shape), self._act
        if self._last:
            x = x.movedim(-1, -3)
        if torch.is_grad_enabled():  # in memory channels last, so that the backward of large kernels takes half as long
            x = x.contiguous(memory_format=torch.channels_last)
        if x.dtype is not self.weights_dtype:
            is_bytes = x.dtype == torch.uint8
            x = as_dtype(x, self.weights_dtype)
            x = x / 255 if is_bytes else x
        with torch.autocast(x.device.type, torch.bfloat16) if self._short else contextlib.nullcontext():
            for conv in self.convs:
                x = act(conv(x))
        x = self.fc(x.flatten(1).to(self.weights_dtype))
        return x if len(lead) == 1 else x.reshape(*lead, -1)


def channels_last(shape: Sequence[int]) -> bool:
    """Whether an image of this shape looks like [H, W, C]: its last axis is the shortest."""
    return shape[2] < min(shape[0], shape[1])


_ENCODERS = {'fc': FCEncoder, 'conv': ConvEncoder}
#: what the settings of an encoder may be, for nets with names of their own
fc = settings_of({FCEncoder: 'norm'})
conv = settings_of({ConvEncoder: 'channels kernels strides layout bfloat16'}, encoder_type='conv')


def widths_of(embedding_dim: int, hidden_dim_list: Layers | None, *before: int) -> list[Any]:
    """
    Overview:
        Widths of an encoder's layers: ``hidden_dim_list``, or those before and then ``embedding_dim``.
    """
    if hidden_dim_list is not None:
        as_layers(hidden_dim_list, 'relu')  # says what is wrong
        return list(hidden_dim_list)
    if not isinstance(embedding_dim, int) or embedding_dim < 1:
        raise ValueError(
            f'embedding_dim is the size of the features, one positive int, got {embedding_dim!r}; '
            'the widths of several layers are hidden_dim_list=[...]'
        )
    return [*before, embedding_dim]


def make_encoder(
    obs_dim: int | Sequence[int],
    embedding_dim: int,
    hidden_dim_list: Layers | None,
    before: Sequence[int],
    activation: str | Activation,
    encoder_type: str | type = 'fc',
    **kwargs: Any,
) -> Any:
    """
    Overview:
        The encoder of an observation.
    Arguments:
        - embedding_dim (:obj:`int`): size of the features, if ``hidden_dim_list`` is None
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the linear layers; None is those of ``before``, which
          convolutions need not, and then ``embedding_dim``
        - encoder_type (:obj:`str | type`): 'fc', 'conv', or a class with the arguments of ``FCEncoder`` and its
          attributes ``out_dim`` and ``obs_shape``
        - kwargs: further arguments of that class
    """
    if isinstance(encoder_type, str) and encoder_type not in _ENCODERS:
        raise UnknownNameError(unknown_name('encoder_type', encoder_type, _ENCODERS))
    widths: Layers = widths_of(embedding_dim, hidden_dim_list, *(() if encoder_type == 'conv' else before))
    build: Any = _ENCODERS[encoder_type] if isinstance(encoder_type, str) else encoder_type
    return build(obs_dim, widths, activation=activation, **kwargs)
