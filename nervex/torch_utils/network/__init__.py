"""Parts of networks for structured observations: encodings, convolutions, residual blocks, attention, scatter maps."""

from nervex.torch_utils.network.blocks import (
    GLU,
    BilinearUpsample,
    NearestUpsample,
    ResBlock,
    ResFCBlock,
    build_activation,
    build_normalization,
    conv1d_block,
    conv2d_block,
    deconv2d_block,
    fc_block,
)
from nervex.torch_utils.network.encoding import ScatterConnection, SoftArgmax, binary_encode, one_hot, sequence_mask
from nervex.torch_utils.network.mlp import MLP
from nervex.torch_utils.network.noisy import NoiseLinearLayer
from nervex.torch_utils.network.rnn import RNN, get_lstm
from nervex.torch_utils.network.transformer import Attention, Transformer

__all__ = [
    'GLU',
    'MLP',
    'RNN',
    'Attention',
    'BilinearUpsample',
    'NearestUpsample',
    'NoiseLinearLayer',
    'ResBlock',
    'ResFCBlock',
    'ScatterConnection',
    'SoftArgmax',
    'Transformer',
    'binary_encode',
    'build_activation',
    'build_normalization',
    'conv1d_block',
    'conv2d_block',
    'deconv2d_block',
    'fc_block',
    'get_lstm',
    'one_hot',
    'sequence_mask',
]
