"""The parts that models are made of: encoders and heads."""

from nervex.model.common.encoder import ConvEncoder, FCEncoder
from nervex.model.common.heads import (
    DiscreteHead,
    DistributionHead,
    DuelingHead,
    GaussianHead,
    MultiHead,
    QuantileHead,
    QuantileRegressionHead,
    RegressionHead,
)
from nervex.model.common.modes import ActorCriticBase, ModeNet

ReparameterizationHead = GaussianHead

__all__ = [
    'ActorCriticBase',
    'ConvEncoder',
    'DiscreteHead',
    'DistributionHead',
    'DuelingHead',
    'FCEncoder',
    'GaussianHead',
    'ModeNet',
    'MultiHead',
    'QuantileHead',
    'QuantileRegressionHead',
    'RegressionHead',
    'ReparameterizationHead',
]
