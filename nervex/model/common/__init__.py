"""The parts that models are made of: encoders and heads."""

from nervex.utils.lazy import homes, lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        **homes(
            {
                'nervex.model.common.encoder': 'ConvEncoder FCEncoder',
                'nervex.model.common.heads': (
                    'DiscreteHead DistributionHead DuelingHead GaussianHead MultiHead QuantileHead '
                    'QuantileRegressionHead RegressionHead'
                ),
                'nervex.model.common.modes': 'ActorCriticBase ModeNet',
            }
        ),
        'ReparameterizationHead': 'nervex.model.common.heads:GaussianHead',
    },
)
