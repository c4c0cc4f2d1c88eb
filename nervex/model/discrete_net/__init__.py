"""Networks of action values."""

from nervex.utils.lazy import lazy_exports

_NETS = """
    ConvDiscreteNet ConvRDiscreteNet ConvSQNDiscreteNet DiscreteNet FCDiscreteNet FCRDiscreteNet
    NoiseDistributionConvDiscreteNet
    NoiseDistributionFCDiscreteNet NoiseFCDiscreteNet NoiseQuantileConvDiscreteNet NoiseQuantileFCDiscreteNet
    QRConvDiscreteNet QRFCDiscreteNet SQNDiscreteNet"""
__getattr__, __dir__, __all__ = lazy_exports(__name__, {'nervex.model.discrete_net.discrete_net': _NETS})
