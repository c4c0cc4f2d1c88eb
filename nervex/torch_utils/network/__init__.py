"""Parts of networks for structured observations: encodings, convolutions, residual blocks, attention, scatter maps."""

from nervex.utils.lazy import lazy_exports

HOMES = {
    'nervex.torch_utils.network.blocks': (
        'BilinearUpsample GLU NearestUpsample ResBlock ResFCBlock build_normalization conv1d_block conv2d_block '
        'deconv2d_block fc_block'
    ),
    'nervex.torch_utils.network.activation': 'build_activation',
    'nervex.torch_utils.network.encoding': 'ScatterConnection SoftArgmax binary_encode one_hot sequence_mask',
    'nervex.torch_utils.network.mlp': 'MLP NoiseLinearLayer',
    'nervex.torch_utils.network.rnn': 'RNN get_lstm',
    'nervex.torch_utils.network.transformer': 'Attention Transformer',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, HOMES)
