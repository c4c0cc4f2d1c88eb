"""The env managers: N envs behind one interface."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nervex.rl_utils.normalize import Normalizer
from nervex.utils.errors import ConfigError
from nervex.utils.registry_factory import ENV_MANAGER_REGISTRY
from nervex.worker.actor.env_manager.backend import Backend, WorkerLost
from nervex.worker.actor.env_manager.forms import RowMap, TimestepMap
from nervex.worker.actor.env_manager.kinds import (
    AsyncSubprocessEnvManager,
    BaseEnvManager,
    SubprocessEnvManager,
    SyncSubprocessEnvManager,
    ThreadEnvManager,
    VectorEnvManager,
)
from nervex.worker.actor.env_manager.manager import EnvManager
from nervex.worker.actor.env_manager.step_block import EnvState, EnvStateError, StepBlock

__all__ = [
    'AsyncSubprocessEnvManager',
    'Backend',
    'BaseEnvManager',
    'EnvManager',
    'EnvState',
    'EnvStateError',
    'Normalizer',
    'RowMap',
    'StepBlock',
    'SubprocessEnvManager',
    'SyncSubprocessEnvManager',
    'ThreadEnvManager',
    'TimestepMap',
    'VectorEnvManager',
    'WorkerLost',
    'create_env_manager',
    'normalizer_for',
]


def create_env_manager(
    manager_type: str | type,
    env_fn: Callable[[dict], Any],
    env_cfgs: Sequence[dict],
    manager_cfg: Mapping | None = None,
) -> EnvManager:
    """
    Overview:
        The env manager that ``env.env_manager_type`` names ('base', 'subprocess', 'async_subprocess', 'thread',
        'vector', or a registered name; a class may be given itself), not launched yet.
    """
    cls: Any = ENV_MANAGER_REGISTRY.get(manager_type) if isinstance(manager_type, str) else manager_type
    if getattr(env_fn, 'one_a_process', False):
        name, given = getattr(env_fn, '__name__', env_fn), manager_cfg or {}
        if not cls.backend.apart:
            text = f"got '{manager_type}', but a process can have one {name}; take 'subprocess'"
            raise ConfigError([f'env.env_manager_type: {text}'])
        if given.get('envs_per_worker', 1) > 1 or given.get('hybrid'):
            text = f'a process can have one {name}; leave envs_per_worker at 1 and hybrid at False'
            raise ConfigError([f'env.manager: {text}'])
    return cls(env_fn=env_fn, env_cfg=env_cfgs, env_num=len(env_cfgs), manager_cfg=manager_cfg)


def normalizer_for(manager_type: str | type, manager_cfg: Mapping | None) -> Normalizer | None:
    """What a manager of these settings scales observations and rewards by; None if it scales neither."""
    return create_env_manager(manager_type, dict, [{}], manager_cfg).normalizer
