"""
Networks: plain modules that take and return dicts of tensors. Submodules are imported when a name is first asked for.

    model = create_model({'model_type': 'fc_discrete_net', 'obs_dim': 4, 'action_dim': 2})
    q = model({'obs': obs})['logit']
"""

from nervex.utils.lazy import homes, lazy_exports
from nervex.utils.registry_factory import MODEL_REGISTRY

__getattr__, __dir__, _LAZY = lazy_exports(
    __name__,
    {
        **homes(
            {
                'nervex.model.actor_critic.policy_head': 'GaussianHead',
                'nervex.model.actor_critic.recurrent_ac': 'ConvRValueAC FCRValueAC',
                'nervex.model.actor_critic.value_ac': 'ConvValueAC FCValueAC ValueAC',
                'nervex.model.atoc.atoc': 'ATOC ATOCQAC',
                'nervex.model.coma.coma': 'ComaNetwork',
                'nervex.model.common.distribution_head': 'DistributionHead QuantileHead QuantileRegressionHead',
                'nervex.model.common.encoder': 'ConvEncoder FCEncoder',
                'nervex.model.common.modes': 'ActorCriticBase ModeNet',
                'nervex.model.common.multi_head': 'MultiHead',
                'nervex.model.common.q_head': 'DiscreteHead DuelingHead',
                'nervex.model.common.regression_head': 'RegressionHead',
                'nervex.model.create': 'create_model',
                'nervex.model.discrete_net.discrete_net': 'DiscreteNet',
                'nervex.model.discrete_net.distribution_nets': (
                    'NoiseDistributionConvDiscreteNet NoiseDistributionFCDiscreteNet NoiseQuantileConvDiscreteNet '
                    'NoiseQuantileFCDiscreteNet QRConvDiscreteNet QRFCDiscreteNet'
                ),
                'nervex.model.discrete_net.sqn': 'SQNDiscreteNet',
                'nervex.model.discrete_net.value_nets': (
                    'ConvDiscreteNet ConvRDiscreteNet FCDiscreteNet FCRDiscreteNet NoiseFCDiscreteNet'
                ),
                'nervex.model.ppg.ppg': 'ConvPPG FCPPG PPG',
                'nervex.model.qac.qac': 'QAC',
                'nervex.model.qmix.collaq': 'CollaQ',
                'nervex.model.qmix.mixer': 'Mixer',
                'nervex.model.qmix.qmix': 'QMix',
                'nervex.model.sac.sac': 'SACModel',
                'nervex.torch_utils.network': 'MLP NoiseLinearLayer RNN',
                'nervex.torch_utils.network.shapes': 'InputShapeError',
            }
        ),
        'ReparameterizationHead': 'nervex.model.actor_critic.policy_head:GaussianHead',
    },
)
__all__ = ['MODEL_REGISTRY', *_LAZY]
