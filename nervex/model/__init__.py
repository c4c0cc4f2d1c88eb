"""
Networks: plain modules that take and return dicts of tensors. Submodules are imported when a name is first asked for.

    model = create_model({'model_type': 'fc_discrete_net', 'obs_dim': 4, 'action_dim': 2})
    q = model({'obs': obs})['logit']
"""

from nervex.model import common, discrete_net
from nervex.utils.lazy import lazy_exports
from nervex.utils.registry_factory import MODEL_REGISTRY

_HOMES = {
    'nervex.model.actor_critic': 'ConvRValueAC ConvValueAC FCRValueAC FCValueAC ValueAC',
    'nervex.model.atoc': 'ATOC ATOCQAC',
    'nervex.model.coma': 'ComaNetwork',
    'nervex.model.common': ' '.join(common.__all__),
    'nervex.model.create': 'create_model',
    'nervex.model.discrete_net': ' '.join(discrete_net.__all__),
    'nervex.model.implicit_q': 'ImplicitQModel',
    'nervex.model.ppg': 'ConvPPG FCPPG PPG',
    'nervex.model.qac': 'QAC',
    'nervex.model.qmix': 'CollaQ Mixer QMix',
    'nervex.model.sac': 'ConvDiscreteSACModel DiscreteSACModel SACModel',
    'nervex.torch_utils.network': 'MLP NoiseLinearLayer RNN',
    'nervex.torch_utils.network.shapes': 'InputShapeError',
}
__getattr__, __dir__, _LAZY = lazy_exports(__name__, _HOMES)
register_model = MODEL_REGISTRY.register
__all__ = ['MODEL_REGISTRY', 'register_model', *_LAZY]
