"""From the ``env`` section of a config to an env class and the configs of its instances."""

from collections.abc import Iterable
from typing import Any

from nervex.utils.errors import UnknownNameError, unknown_name
from nervex.utils.import_helper import import_modules
from nervex.utils.registry_factory import ENV_REGISTRY

env_mapping = ENV_REGISTRY


def register_env(name: str, cls: Any) -> None:
    """Make ``env_type: name`` in a config mean this class."""
    ENV_REGISTRY.register(name, cls)


def get_env_cls(cfg: dict) -> Any:
    """
    Overview:
        The env class that the ``env`` section names: imports ``import_names`` first, then looks ``env_type`` up. A
        class (or any callable that makes an env from a config) may stand there itself.
    """
    names = cfg.get('import_names') or []
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f'env.import_names: must be a list of dotted module paths, got {names!r}')
    import_modules(names)
    env_type = cfg.get('env_type')
    if env_type is None:
        raise UnknownNameError(f"invalid env type: the env section names no 'env_type'. Known: {ENV_REGISTRY.query()}")
    if callable(env_type):
        return env_type
    if env_type not in ENV_REGISTRY:
        text = unknown_name('env', env_type, ENV_REGISTRY)
        raise UnknownNameError(
            f'invalid env type: {text}. If it is your own, list its module in env.import_names; any Gymnasium id runs '
            f"with env_type='gym', env_id='{env_type}'"
        )
    return ENV_REGISTRY.get(env_type)


def get_vec_env_setting(cfg: dict) -> tuple[Any, list[dict], list[dict]]:
    """
    Overview:
        What the env managers need.
    Arguments:
        - cfg (:obj:`dict`): the ``env`` section; it is not changed
    Returns:
        - setting (:obj:`tuple`): the env class, the configs of the collecting envs, those of the evaluating envs
    """
    env_fn = get_env_cls(cfg)
    if not hasattr(env_fn, 'create_actor_env_cfg'):  # a function that makes envs: every env gets the section itself
        from nervex.envs.env.base_env import BaseEnv

        return env_fn, BaseEnv.create_actor_env_cfg(cfg), BaseEnv.create_evaluator_env_cfg(cfg)
    return env_fn, env_fn.create_actor_env_cfg(cfg), env_fn.create_evaluator_env_cfg(cfg)
