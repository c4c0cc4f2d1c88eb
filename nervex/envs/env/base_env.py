"""What an environment is: BaseEnv, the tuples that its methods answer with, and how a config names one."""

import copy
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Iterable
from typing import Any

import numpy as np
from easydict import EasyDict

from nervex.envs.env.plain_state import attributes, set_attributes
from nervex.utils.declare import class_config, declared_config
from nervex.utils.errors import UnknownNameError, unknown_name
from nervex.utils.import_helper import import_modules
from nervex.utils.registry_factory import ENV_REGISTRY

BaseEnvTimestep = namedtuple('BaseEnvTimestep', ['obs', 'reward', 'done', 'info'])
BaseEnvInfo = namedtuple(
    'BaseEnvInfo',
    ['agent_num', 'obs_space', 'act_space', 'rew_space', 'use_wrappers', 'sides', 'rules'],
    defaults=[None, 1, None],  # sides: 2 where two players are against each other; rules: see TwoSidedEnv
)


class BaseEnv(ABC):
    """
    Overview:
        An environment: a superset of the Gym interface. The constructor is light; what is heavy is built in the first
        ``reset``. A subclass declares its settings in ``config``, keeps its own random generator, and puts
        ``final_eval_reward`` (and ``truncated=True`` if only a time limit ended the episode) into the last ``info``.
    Interfaces:
        reset, step, seed, close, info, render, episode_rng, as_gymnasium, create_actor_env_cfg,
        create_evaluator_env_cfg, enable_save_replay; metadata, spec, render_mode, unwrapped, observation_space,
        action_space as in Gymnasium

    .. note::
        An env may also offer ``step_into(action, row) -> (reward, terminated, truncated, info)``, which writes the next
        observation into ``row`` (an array of the observation's shape) and answers plain Python values. Env managers
        then use it instead of ``step``; it saves the objects that ``step`` makes. It is ignored in a subclass that
        overrides ``step`` alone.
    """

    config: dict = dict(
        actor_env_num=1,  # envs that collect
        evaluator_env_num=1,  # envs that evaluate; nervex.config checks both
    )

    spec: Any = None
    render_mode: str | None = None
    one_a_process = False  # a process can have one env of the class: the simulator is global there
    state_constants: tuple[str, ...] = ()  # attributes that follow from the config: no part of ``state_dict``
    _seed: int | None = None  # what it was seeded with
    _dynamic_seed = True
    _np_random: np.random.Generator | None = None

    def __init__(self, cfg: dict | None = None) -> None:
        self._cfg = self.complete_cfg(cfg)

    @classmethod
    def default_config(cls) -> dict:
        """The settings of the class and its bases, merged base first."""
        return declared_config(cls)

    @classmethod
    def complete_cfg(cls, cfg: dict | None) -> EasyDict:
        """A copy of ``cfg`` over the defaults; the caller's dict is not changed."""
        return EasyDict(class_config(cls, cfg))

    @abstractmethod
    def reset(self, **kwargs: Any) -> Any:
        """Begin an episode; answers the first observation. The argument ``seed`` seeds the env, as in Gymnasium."""

    @abstractmethod
    def step(self, action: Any) -> BaseEnvTimestep:
        """One step. ``reward`` is a float32 array of shape (1, ), ``done`` a bool, ``info`` a dict."""

    @abstractmethod
    def info(self) -> BaseEnvInfo:
        """The spaces; works before the first ``reset``."""

    @abstractmethod
    def __repr__(self) -> str:
        """One line that tells this env from others."""

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """
        Overview:
            Seed this env's own generator. With ``dynamic_seed`` every episode differs (to collect); without, each
            episode begins from the same seed (to evaluate).
        """
        self._seed = int(seed)
        self._dynamic_seed = bool(dynamic_seed)
        self._np_random = None

    def episode_rng(self, seed: int | None = None) -> np.random.Generator:
        """What an episode draws from; ``reset`` asks for it once, with the seed that it was given, if any."""
        if seed is not None:
            self.seed(seed, self._dynamic_seed)
        if self._np_random is None or (self._seed is not None and not self._dynamic_seed):
            self._np_random = np.random.default_rng(self._seed)
        return self._np_random

    def render(self) -> Any:
        """The picture of the present state: uint8, height x width x 3, if the env can draw itself."""
        raise NotImplementedError(f'{self!r} cannot draw itself')

    @property
    def metadata(self) -> dict[str, Any]:
        """How the env can be drawn; an env that draws itself says its frames per second in ``render_fps``."""
        fps = getattr(self, 'render_fps', None)
        return {'render_modes': []} if fps is None else {'render_modes': ['rgb_array'], 'render_fps': fps}

    @property
    def unwrapped(self) -> Any:
        """The env below all wrappers."""
        return self

    def as_gymnasium(self) -> Any:
        """This env in the form of Gymnasium's answers, (obs, info) and five values: what its wrappers take."""
        from nervex.envs.gym_view import GymView

        return GymView(self)

    def close(self) -> None:  # noqa: B027 (an env that holds nothing need not say so)
        """Free what the env holds; may be called twice."""

    def state_dict(self) -> dict[str, Any]:
        """
        Overview:
            The env in the middle of an episode, for an exact resume, in the words of JSON: all its attributes but the
            config and ``state_constants``; an object among them is asked for its own ``state_dict``. TypeError if there
            is more to it: then a run saves the env by pickle, which only its own user may open.
        """
        return attributes(self, ('_cfg', *self.state_constants))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave, into an env of the same config that was reset."""
        set_attributes(self, state)

    @staticmethod
    def create_actor_env_cfg(cfg: dict) -> list[dict]:
        """One config for each env that collects."""
        return [copy.deepcopy(cfg) for _ in range(_env_num(cfg, 'actor_env_num'))]

    @staticmethod
    def create_evaluator_env_cfg(cfg: dict) -> list[dict]:
        """One config for each env that evaluates."""
        return [copy.deepcopy(cfg) for _ in range(_env_num(cfg, 'evaluator_env_num'))]

    def enable_save_replay(self, replay_path: str) -> None:
        """Save a video of every following episode in ``replay_path``, if the env draws itself (``render``)."""
        if type(self).render is BaseEnv.render:
            raise NotImplementedError(f'{type(self).__name__} cannot save replays: it has no render() that draws it')
        from nervex.envs.wrappers.video import film_episodes

        film_episodes(self, replay_path)

    @property
    def observation_space(self) -> Any:
        """The observation space as a Gymnasium space."""
        from nervex.envs.spaces import to_gymnasium

        return to_gymnasium(self.info().obs_space)

    @property
    def action_space(self) -> Any:
        """The action space as a Gymnasium space."""
        from nervex.envs.spaces import to_gymnasium

        return to_gymnasium(self.info().act_space)

    def __enter__(self) -> 'BaseEnv':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def _env_num(cfg: dict, key: str) -> int:
    num = cfg.get(key, 1)
    if isinstance(num, bool) or not isinstance(num, int) or num < 1:
        raise ValueError(f'env.{key}: must be an int >= 1, got {num!r}')
    return num


# ---- from the ``env`` section of a config to a class and the configs of its instances
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
        return env_fn, BaseEnv.create_actor_env_cfg(cfg), BaseEnv.create_evaluator_env_cfg(cfg)
    return env_fn, env_fn.create_actor_env_cfg(cfg), env_fn.create_evaluator_env_cfg(cfg)
