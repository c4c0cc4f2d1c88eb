"""
Networks: plain modules that take and return dicts of tensors. Submodules are imported when a name is first asked for.

    model = create_model({'model_type': 'fc_discrete_net', 'obs_dim': 4, 'action_dim': 2})
    q = model({'obs': obs})['logit']
"""
import importlib
from typing import Any

from nervex.utils.registry_factory import MODEL_REGISTRY

_HOME = {
    'create_model': 'create',
    'DiscreteNet': 'discrete_net.discrete_net',
    'FCDiscreteNet': 'discrete_net.value_nets',
    'ConvDiscreteNet': 'discrete_net.value_nets',
    'FCRDiscreteNet': 'discrete_net.value_nets',
    'ConvRDiscreteNet': 'discrete_net.value_nets',
    'NoiseFCDiscreteNet': 'discrete_net.value_nets',
    'NoiseDistributionFCDiscreteNet': 'discrete_net.distribution_nets',
    'NoiseDistributionConvDiscreteNet': 'discrete_net.distribution_nets',
    'NoiseQuantileFCDiscreteNet': 'discrete_net.distribution_nets',
    'NoiseQuantileConvDiscreteNet': 'discrete_net.distribution_nets',
    'QRFCDiscreteNet': 'discrete_net.distribution_nets',
    'QRConvDiscreteNet': 'discrete_net.distribution_nets',
    'SQNDiscreteNet': 'discrete_net.sqn',
    'ValueAC': 'actor_critic.value_ac',
    'FCValueAC': 'actor_critic.value_ac',
    'ConvValueAC': 'actor_critic.value_ac',
    'FCRValueAC': 'actor_critic.recurrent_ac',
    'ConvRValueAC': 'actor_critic.recurrent_ac',
    'QAC': 'qac.qac',
    'SACModel': 'sac.sac',
    'PPG': 'ppg.ppg',
    'FCPPG': 'ppg.ppg',
    'ConvPPG': 'ppg.ppg',
    'Mixer': 'qmix.mixer',
    'QMix': 'qmix.qmix',
    'CollaQ': 'qmix.collaq',
    'ComaNetwork': 'coma.coma',
    'ATOCQAC': 'atoc.atoc',
    'ATOC': 'atoc.atoc',
    'FCEncoder': 'common.encoder',
    'ConvEncoder': 'common.encoder',
    'MLP': 'common.mlp',
    'DiscreteHead': 'common.q_head',
    'DuelingHead': 'common.q_head',
    'MultiHead': 'common.multi_head',
    'DistributionHead': 'common.distribution_head',
    'QuantileHead': 'common.distribution_head',
    'QuantileRegressionHead': 'common.distribution_head',
    'GaussianHead': 'actor_critic.policy_head',
    'NoiseLinearLayer': 'common.noisy',
    'RNN': 'common.rnn',
    'ModeNet': 'common.modes',
    'InputShapeError': 'common.shapes',
}

__all__ = ['MODEL_REGISTRY', *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'nervex.model' has no attribute '{name}'")
    value = getattr(importlib.import_module(f'nervex.model.{_HOME[name]}'), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
