"""The parts that models are made of: encoders and heads."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.model.common.encoder': 'ConvEncoder FCEncoder',
    'nervex.model.common.heads': (
        'DiscreteHead DistributionHead DuelingHead GaussianHead MultiHead QuantileHead QuantileRegressionHead '
        'RegressionHead ReparameterizationHead=GaussianHead'
    ),
    'nervex.model.common.modes': 'ActorCriticBase ModeNet',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
