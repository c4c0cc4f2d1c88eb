"""The kinds of env managers that a config may name: where the envs live, and how one waits for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nervex.rl_utils.normalize import Normalizer
from nervex.utils.declare import settings
from nervex.utils.errors import ConfigError
from nervex.utils.registry_factory import ENV_MANAGER_REGISTRY
from nervex.worker.actor.env_manager.manager import EnvManager
from nervex.worker.actor.env_manager.processes import Processes
from nervex.worker.actor.env_manager.threads import Threads
from nervex.worker.actor.env_manager.vector import AsyncVectorised, Vectorised


class BaseEnvManager(EnvManager):
    """
    Overview:
        Steps all envs in this process. It has no overhead to speak of, so it is the right kind while a step of an env
        takes less than about 50 us; it cannot interrupt an env that hangs.
    """


class SyncSubprocessEnvManager(EnvManager):
    """
    Overview:
        A subprocess holds ``envs_per_worker`` envs; a step returns when all have stepped. For envs whose steps take
        about the same time, more than some 50 us each. Observations, rewards, ends and actions lie in shared memory;
        only infos and errors travel by pipe. An env that raises, hangs or dies is restarted.

        ``hybrid=True`` is for cheap envs: this process steps its share, and as many children as there are further cores
        step the rest. An env in this process cannot be interrupted, and takes the run with it if it ends the process.
    """

    backend = Processes
    config = settings(max_retry=5)  # more than in-process: processes die for reasons that are not the env's


class AsyncSubprocessEnvManager(SyncSubprocessEnvManager):
    """
    Overview:
        ``advance`` sends actions and answers with whichever envs have finished: as soon as ``wait_num`` have, or after
        ``step_wait_timeout`` if one has. For envs whose steps take uneven time. Episodes begin anew in the background,
        and so do envs that failed; ``observe`` waits only if no env at all is ready.
    """

    together = False


SubprocessEnvManager = AsyncSubprocessEnvManager


class ThreadEnvManager(EnvManager):
    """
    Overview:
        As AsyncSubprocessEnvManager, with threads of this process: for envs that are clients of something outside and
        wait most of the time (StarCraft II, CARLA), or that cannot live in a subprocess. An env that hangs is given up
        and replaced; its thread ends when the env returns.
    """

    backend = Threads
    together = False
    config = dict(max_retry=5)


class VectorEnvManager(EnvManager):
    """
    Overview:
        Drives one vectorised env. The fastest kind where such an env exists (Atari: ALE's own). All ready envs step
        together; with engines that reset in the step after an end, that env is not ready for one step.

        ``env_fn`` is a class with ``create_vector_env(cfgs)`` (GymEnv has it), or a function that answers an engine as
        in ``nervex.envs.vector_engine``. The configs of all envs are equal, episodes always follow one another at once.
    """

    backend = Vectorised


class AsyncVectorEnvManager(VectorEnvManager):
    """
    Overview:
        Drives a vectorised env that answers with its first ``batch_size`` envs, as EnvPool does with ``vector_backend:
        envpool, vector_kwargs: {batch_size: 4}``; ``advance`` sends actions to all ready envs and answers once. For
        envs whose steps take uneven time. Which envs come first depends on the clock, so runs cannot be repeated.
    """

    backend = AsyncVectorised
    together = False


def create_env_manager(
    manager_type: str | type,
    env_fn: Callable[[dict], Any],
    env_cfgs: Sequence[dict],
    manager_cfg: Mapping | None = None,
) -> EnvManager:
    """
    Overview:
        The env manager that ``env.env_manager_type`` names ('base', 'subprocess', 'async_subprocess', 'thread',
        'vector', 'async_vector', or a registered name; a class may be given itself), not launched yet.
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
