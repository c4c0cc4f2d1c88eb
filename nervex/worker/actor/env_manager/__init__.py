"""The env managers: N envs behind one interface."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nervex.rl_utils.normalize import Normalizer
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
    cls = ENV_MANAGER_REGISTRY.get(manager_type) if isinstance(manager_type, str) else manager_type
    return cls(env_fn=env_fn, env_cfg=env_cfgs, env_num=len(env_cfgs), manager_cfg=manager_cfg)


def normalizer_for(manager_type: str | type, manager_cfg: Mapping | None) -> Normalizer | None:
    """What a manager of these settings scales observations and rewards by; None if it scales neither."""
    return create_env_manager(manager_type, dict, [{}], manager_cfg).normalizer
