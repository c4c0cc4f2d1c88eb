"""Networks of action values."""

from nervex.model.discrete_net.discrete_net import (
    ConvDiscreteNet,
    ConvRDiscreteNet,
    DiscreteNet,
    FCDiscreteNet,
    FCRDiscreteNet,
    NoiseDistributionConvDiscreteNet,
    NoiseDistributionFCDiscreteNet,
    NoiseFCDiscreteNet,
    NoiseQuantileConvDiscreteNet,
    NoiseQuantileFCDiscreteNet,
    QRConvDiscreteNet,
    QRFCDiscreteNet,
    SQNDiscreteNet,
)

__all__ = [
    'ConvDiscreteNet',
    'ConvRDiscreteNet',
    'DiscreteNet',
    'FCDiscreteNet',
    'FCRDiscreteNet',
    'NoiseDistributionConvDiscreteNet',
    'NoiseDistributionFCDiscreteNet',
    'NoiseFCDiscreteNet',
    'NoiseQuantileConvDiscreteNet',
    'NoiseQuantileFCDiscreteNet',
    'QRConvDiscreteNet',
    'QRFCDiscreteNet',
    'SQNDiscreteNet',
]
