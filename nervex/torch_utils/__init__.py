"""Optimizers, flat parameters, networks, losses, distributions, checkpoints and data conversion on top of torch."""
from nervex.torch_utils.acting import GraphedForward
from nervex.torch_utils.flat import FlatParameters, flatten
from nervex.torch_utils.graph import GraphedLoss
from nervex.torch_utils.optimizer_helper import Adam, RMSprop
from nervex.torch_utils.wide_matmul import fast_matmul

__all__ = ['Adam', 'FlatParameters', 'GraphedForward', 'GraphedLoss', 'RMSprop', 'fast_matmul', 'flatten']
