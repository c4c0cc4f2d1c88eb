"""Optimizers, flat parameters, networks, losses, distributions, checkpoints and data conversion on top of torch."""
from nervex.torch_utils.acting import GraphedForward
from nervex.torch_utils.flat import FlatParameters, flatten
from nervex.torch_utils.graph import GraphedLoss
from nervex.torch_utils.matmul import FastMatmul
from nervex.torch_utils.optimizer_helper import Adam, RMSprop

__all__ = ['Adam', 'FastMatmul', 'FlatParameters', 'GraphedForward', 'GraphedLoss', 'RMSprop', 'flatten']
