"""Optimizers, flat parameters, networks, losses, distributions, checkpoints and data conversion on top of torch."""

from nervex.torch_utils.flat import FlatParameters
from nervex.torch_utils.network import HOMES as NETWORK
from nervex.torch_utils.optimizer_helper import Adam, RMSprop
from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.data.dataloader': 'CudaFetcher',
    'nervex.graph': 'FastMatmul GraphedForward GraphedLoss',
    'nervex.torch_utils.checkpoint_helper': 'CheckpointHelper CountVar auto_checkpoint build_checkpoint_helper',
    'nervex.torch_utils.data_helper': (
        'LogDict build_log_buffer get_tensor_data is_differentiable same_shape tensor_to_list to_device '
        'to_dtype to_list to_ndarray to_tensor'
    ),
    'nervex.torch_utils.distribution': 'CategoricalPd CategoricalPdPytorch Pd',
    'nervex.torch_utils.loss': (
        'LabelSmoothCELoss MultiLogitsLoss SoftFocalLoss build_ce_criterion hamming_distance levenshtein_distance'
    ),
    **NETWORK,
}
__getattr__, __dir__, _LAZY = lazy_exports(__name__, _HOMES)
__all__ = [
    'Adam',
    'FlatParameters',
    'RMSprop',
    *_LAZY,
]
