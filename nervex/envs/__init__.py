"""What an environment is, and the adapters of others."""

import importlib
from typing import Any

from nervex.envs.array_env import ArrayEnv
from nervex.envs.check_env import check_env
from nervex.envs.common import EnvElement, EnvElementInfo, EnvElementRunner
from nervex.envs.duel import Duel, Duels, Rivals
from nervex.envs.env.base_env import (
    BaseEnv,
    BaseEnvInfo,
    BaseEnvTimestep,
    env_mapping,
    get_env_cls,
    get_vec_env_setting,
    register_env,
)
from nervex.envs.gym_env import GymEnv
from nervex.envs.pettingzoo_env import PettingZooEnv
from nervex.envs.pettingzoo_game import PettingZooGame
from nervex.envs.two_sided import TwoSidedEnv

__all__ = [
    'ArrayEnv',
    'BaseEnv',
    'BaseEnvInfo',
    'BaseEnvTimestep',
    'Duel',
    'Duels',
    'EnvElement',
    'EnvElementInfo',
    'EnvElementRunner',
    'GymEnv',
    'PettingZooEnv',
    'PettingZooGame',
    'Rivals',
    'TwoSidedEnv',
    'check_env',
    'env_mapping',
    'get_env_cls',
    'get_vec_env_setting',
    'register_env',
]
_MANAGERS = 'nervex.worker.actor.env_manager'  # documented here too; found when asked for, for workers import envs


def __getattr__(name: str) -> Any:
    if name.endswith('EnvManager') or name == 'create_env_manager':
        return getattr(importlib.import_module(_MANAGERS), name)
    raise AttributeError(f'module nervex.envs has no attribute {name!r}')
