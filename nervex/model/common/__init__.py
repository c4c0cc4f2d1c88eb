"""The parts that models are made of: encoders and heads."""

from nervex.utils.lazy import homes, lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        **homes(
            {
                'nervex.model.common.distribution_head': 'DistributionHead QuantileHead QuantileRegressionHead',
                'nervex.model.common.encoder': 'ConvEncoder FCEncoder',
                'nervex.model.common.modes': 'ActorCriticBase ModeNet',
                'nervex.model.common.multi_head': 'MultiHead',
                'nervex.model.common.q_head': 'DiscreteHead DuelingHead',
                'nervex.model.common.regression_head': 'RegressionHead',
                'nervex.model.actor_critic.policy_head': 'GaussianHead',
            }
        ),
        'ReparameterizationHead': 'nervex.model.actor_critic.policy_head:GaussianHead',
    },
)
