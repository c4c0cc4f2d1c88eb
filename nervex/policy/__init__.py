"""Algorithms. Names are imported when they are first used; ``nervex -q policy`` lists what configs may name."""

import importlib
from typing import Any

from nervex.policy.base_policy import Policy, create_policy, register_policy
from nervex.policy.batched import batched, is_batched
from nervex.utils import POLICY_REGISTRY

_HOMES = {
    'CommonPolicy': 'nervex.policy.common_policy',
    'check_batched': 'nervex.worker.actor.equivalence',
    'DQNPolicy': 'nervex.policy.dqn',
    'DQNVanillaPolicy': 'nervex.policy.dqn_vanilla',
    'RainbowDQNPolicy': 'nervex.policy.rainbow_dqn',
    'QRDQNPolicy': 'nervex.policy.qrdqn',
    'SQNPolicy': 'nervex.policy.sqn',
    'R2D2Policy': 'nervex.policy.r2d2',
    'ILPolicy': 'nervex.policy.il',
    'CQLPolicy': 'nervex.policy.cql',
    'PPOPolicy': 'nervex.policy.ppo',
    'A2CPolicy': 'nervex.policy.a2c',
    'RecurrentPPOPolicy': 'nervex.policy.ppo_recurrent',
    'PPOVanillaPolicy': 'nervex.policy.ppo_vanilla',
    'PPGPolicy': 'nervex.policy.ppg',
    'IMPALAPolicy': 'nervex.policy.impala',
    'DDPGPolicy': 'nervex.policy.ddpg',
    'TD3Policy': 'nervex.policy.td3',
    'TD3BCPolicy': 'nervex.policy.td3_bc',
    'SACPolicy': 'nervex.policy.sac',
    'DiscreteSACPolicy': 'nervex.policy.sac_discrete',
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f'nervex.policy has no {name!r}')


__all__ = ['POLICY_REGISTRY', 'Policy', 'batched', 'create_policy', 'is_batched', 'register_policy', *_HOMES]
