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
    'FCDiscreteNet': 'discrete_net.discrete_net',
    'ConvDiscreteNet': 'discrete_net.discrete_net',
    'ValueAC': 'actor_critic.value_ac',
    'FCValueAC': 'actor_critic.value_ac',
    'ConvValueAC': 'actor_critic.value_ac',
    'FCEncoder': 'common.encoder',
    'ConvEncoder': 'common.encoder',
    'MLP': 'common.mlp',
    'DiscreteHead': 'common.q_head',
    'DuelingHead': 'common.q_head',
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
