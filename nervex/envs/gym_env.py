"""GymEnv: any Gymnasium id, or any Gymnasium or old gym env object, as a BaseEnv, without writing a class."""

import contextlib
import copy
import ctypes.util
import functools
import importlib
import logging
import math
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.envs.adapter import Adapter
from nervex.envs.common import agent_num
from nervex.envs.env.base_env import BaseEnv, BaseEnvInfo, BaseEnvTimestep
from nervex.envs.env.plain_state import attributes, decode, encode, set_attributes
from nervex.envs.hosting.block import write_row
from nervex.envs.spaces import ActionCodec, ObsCodec, reward_info
from nervex.envs.wrappers.base import GymWrapper, TimeLimit, check_wrappers, reset_gym, step_gym, wrap
from nervex.utils import ENV_REGISTRY
from nervex.utils.declare import setting, settings
from nervex.utils.errors import ExtraMissingError, UnknownNameError, nearest
from nervex.utils.import_helper import EXTRAS

logger = logging.getLogger(__name__)

# Packages whose import registers their ids
HOMES = {
    'ALE/': 'ale_py',
    'NoFrameskip-v': 'ale_py',
    'MiniGrid-': 'minigrid',
    'BabyAI-': 'minigrid',
    'highway-': 'highway_env',
    'merge-v': 'highway_env',
    'roundabout-v': 'highway_env',
    'parking-v': 'highway_env',
    'intersection-v': 'highway_env',
    'racetrack-v': 'highway_env',
    'Meta-World/': 'metaworld',
    'Fetch': 'gymnasium_robotics',
    'PointMaze_': 'gymnasium_robotics',
    'AntMaze_': 'gymnasium_robotics',
    'dm_control/': 'shimmy.dm_control_compatibility',
}
# attributes that are made from the Gym object
_MADE = ('_given', '_env', '_codecs', '_step', '_to_env', '_direct', '_plain_obs')


class GymEnv(Adapter):
    """
    Overview:
        ``env_type='gym', env_id='LunarLander-v3'`` in a config, or ``GymEnv(env_object)``. Spaces become EnvElementInfo
        (see ``nervex.envs.spaces`` for what happens to each kind), a time limit becomes ``truncated``, and rewards are
        float32.
    Arguments:
        - cfg (:obj:`dict | Any`): the settings below, or an env object
    """

    config = settings(
        env_id=setting(None, 'str | None', "the id, e.g. 'CartPole-v1'; 'module:Id-v0' imports the module first"),
        env_fn=setting(None, 'callable | None', 'instead of an id: makes the env, without arguments (Python configs)'),
        package=setting('gymnasium', "'gymnasium' | 'gym'", "'gym' for ids that only the old package knows"),
        make_kwargs=setting({}, 'dict', "passed on to gymnasium.make, e.g. {'continuous': True}"),
        render_mode=setting(None, 'str | None', "how it draws: 'human' in a window, 'rgb_array' for render(), ..."),
        max_episode_steps=setting(None, 'int >= 1 | None', "time limit; None: what the id's registration says"),
        wrappers=setting([], check_wrappers, 'around the Gym object, the first one innermost: nervex -q wrapper'),
        role=setting(None, "'actor' | 'evaluator' | None", 'some wrappers are for one of them; set for each env'),
        use_act_scale=setting(False, 'bool', 'the policy speaks [-1, 1], the env gets the bounds of its Box'),
        one_hot_obs=setting(True, 'bool', 'discrete observations as one-hot vectors; False: as integers'),
        flatten_obs=setting(False, 'bool', 'a Dict or Tuple observation as one vector'),
        vector_backend=setting('auto', "'auto' | 'gymnasium' | 'ale' | 'envpool'", "auto: ale for 'ALE/...' ids"),
        vector_kwargs=setting({}, 'dict', "passed on to the vectorised env, e.g. {'batch_size': 4}"),
        replay_path=None,
    )

    _converters = ('_codecs', '_step', '_to_env')

    def __init__(self, cfg: Any = None) -> None:
        super().__init__(cfg)
        if self._given is None and self._cfg.env_id is None and self._cfg.env_fn is None:
            raise ValueError("GymEnv needs env.env_id, e.g. env_type='gym', env_id='CartPole-v1'")
        for name in ('env_id', 'make_kwargs') if self._cfg.env_fn is not None else ():
            if value := self._cfg[name]:
                raise ValueError(f'env.{name}: got {value!r} beside env.env_fn, which makes the env: give one of them')
        self._limit = self._cfg.max_episode_steps
        self._final_eval_reward, self._steps = 0.0, 0
        if self._given is not None:
            self._build()

    # ------------------------------------------------------------------ the BaseEnv interface
    def reset(self, *, seed: int | None = None, **kwargs: Any) -> Any:
        """Begin an episode; answers the first observation in the form of ``info()``."""
        obs, _ = reset_gym(self.env, self._due_seed(seed), **kwargs)
        self._seeded, self._steps, self._final_eval_reward, self._running = True, 0, 0.0, True
        return self._codecs[1](obs)

    def step(self, action: Any) -> BaseEnvTimestep:
        """One step of the env inside, in the forms of ``info()``."""
        if not self._running:
            raise RuntimeError(f'{self!r}: call reset() before step(), and after the end of an episode')
        raw, reward, terminated, truncated, info = self._step(self._codecs[0].to_env(action))
        self._steps += 1
        reward = np.asarray(reward, np.float32).reshape(-1)
        self._final_eval_reward += float(reward.sum())
        if self._limit is not None and self._steps >= self._limit and not terminated:
            truncated = True
        if terminated or truncated:
            self._running = False
            info = dict(info)
            info.setdefault('final_eval_reward', self._final_eval_reward)
            info['truncated'] = bool(truncated and not terminated)
        return BaseEnvTimestep(self._codecs[1](raw), reward, bool(terminated or truncated), info)

    def step_into(self, action: Any, row: Any) -> tuple[Any, bool, bool, dict]:
        """One step that writes the observation into ``row``; see BaseEnv."""
        raw, reward, terminated, truncated, info = self._step(self._to_env(action))
        write_row(row, raw if self._plain_obs else self._codecs[1](raw))
        self._steps = steps = self._steps + 1
        if steps == self._limit and not terminated:
            truncated = True
        return reward, terminated, truncated, info

    def info(self) -> BaseEnvInfo:
        """The spaces; works before the first reset."""
        self._build()
        act, obs = self._codecs
        return BaseEnvInfo(agent_num(obs.info), obs.info, act.info, reward_info())

    @staticmethod
    def create_actor_env_cfg(cfg: dict) -> list[dict]:
        """One config for each env that collects."""
        return _with_role(BaseEnv.create_actor_env_cfg(cfg), 'actor')

    @staticmethod
    def create_evaluator_env_cfg(cfg: dict) -> list[dict]:
        """One config for each env that evaluates."""
        return _with_role(BaseEnv.create_evaluator_env_cfg(cfg), 'evaluator')

    @staticmethod
    def check_config(cfg: dict) -> list[tuple[str, str]]:
        """What is wrong with the id, as pairs (setting, text): where other mistakes forbid to make the env."""
        env_id = cfg.get('env_id')
        if cfg.get('package') != 'gymnasium' or not isinstance(env_id, str):
            return []
        try:
            known_spec(env_id)
        except (UnknownNameError, ExtraMissingError) as error:
            return [('env_id', str(error))]
        return []

    def state_dict(self) -> dict[str, Any]:
        """Its own attributes and those of the Gym object and of its wrappers, as BaseEnv says."""
        self._build()
        seen: set[int] = set()
        own = attributes(self, ('_cfg', *_MADE, *self.state_constants), seen)
        return {'own': own, 'layers': [_layer_state(env, seen) for env in self._layers()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._build()
        for env, its in zip(self._layers(), state['layers'], strict=True):
            set_attributes(env, its['attributes'])
            _set_physics(env, its['physics'])
        set_attributes(self, state['own'])

    def _layers(self) -> list[Any]:
        """The Gym object, from its outermost wrapper on."""
        layers = [self._env]
        while 'env' in vars(layers[-1]):
            layers.append(layers[-1].env)
        return layers

    @property
    def codecs(self) -> tuple[ActionCodec, ObsCodec]:
        """What turns actions into those of the Gym object, and its observations into those of ``info()``."""
        self._build()
        return self._codecs

    spec = property(lambda self: getattr(self.env, 'spec', None), doc='The registration of the Gym object.')
    render_mode = property(lambda self: getattr(self.env, 'render_mode', None), doc='What the Gym object draws.')
    unwrapped = property(lambda self: getattr(self.env, 'unwrapped', self.env), doc='The Gym object, not wrapped.')

    def render(self) -> Any:
        """What the Gym object draws."""
        from gymnasium.error import DependencyNotInstalled

        try:
            return self.env.render()
        except DependencyNotInstalled as error:
            raise ExtraMissingError(f"{self!r} cannot be drawn: pip install 'nervex[video]' ({error})") from error

    # ------------------------------------------------------------------ building
    def _wrap(self, made: Any) -> Any:
        return wrap(made, self._cfg.wrappers, self._cfg.role)

    def _make(self) -> Any:
        kwargs = drawn(self._cfg)
        if self._cfg.package == 'gymnasium':
            env, limit = make_gymnasium(self._cfg.env_id, kwargs)
            self._limit = limit if self._cfg.max_episode_steps is None else self._cfg.max_episode_steps
            if self._limit is None and not limits_itself(env, self._cfg.wrappers):
                _warn_of_no_limit(self._cfg.env_id)
            return env
        try:
            gym = importlib.import_module(self._cfg.package)
        except ImportError as error:
            text = f"env.package '{self._cfg.package}' is not installed: pip install nervex[gym]"
            raise ExtraMissingError(text) from error
        # gym 0.26's checker uses a NumPy name that is gone; the adapter checks for itself.
        return gym.make(self._cfg.env_id, disable_env_checker=True, **kwargs)

    def _bind(self) -> None:
        act = ActionCodec(self._env.action_space, self._cfg.use_act_scale)
        obs = ObsCodec(self._env.observation_space, self._cfg.one_hot_obs, self._cfg.flatten_obs)
        self._codecs, self._plain_obs = (act, obs), obs.plain
        self._to_env = _same if act.plain else act.to_env
        step = self._env.step
        modern = any(base.__module__.split('.')[0] == 'gymnasium' for base in type(self._env).__mro__) or isinstance(
            self._env, GymWrapper
        )
        self._step = step if modern else lambda action: step_gym(step(action))
        self._direct = modern and act.plain and obs.plain and type(self).step_into is GymEnv.step_into

    @classmethod
    def create_vector_env(cls, cfgs: list[dict]) -> Any:
        """One vectorised env for all of these (equal) configs."""
        from nervex.envs.vector_engine import make_engine

        return make_engine(cls.complete_cfg(cfgs[0]), len(cfgs))

    def limited(self) -> Any:
        """The Gym object, with its time limit as a wrapper."""
        self._build()
        return self._env if self._limit is None else TimeLimit(self._env, self._limit)

    def direct_step(self) -> tuple[Callable[[Any], tuple], int | None] | None:
        """For env managers: the Gym object's own ``step`` and its time limit, which they keep; None if it converts."""
        self._build()
        filmed = 'step' in vars(self)
        return (self._env.step, self._limit) if self._direct and not filmed else None


def _constants(env: Any) -> list[str]:
    """What of a Gym object is made anew: its spaces, unless somebody has drawn from them, and the like."""
    fresh = [n for n in vars(env) if n.endswith('_space') and getattr(vars(env)[n], '_np_random', None) is None]
    mujoco = [] if _physics(env) is None else ['data', 'model', 'mujoco_renderer', 'fullpath']
    return ['env', 'spec', '_cached_spec', '_ezpickle_args', '_ezpickle_kwargs', *mujoco, *fresh]


def _layer_state(env: Any, seen: set[int]) -> dict[str, Any]:
    """The attributes of a Gym object and MuJoCo's numbers; NotImplementedError where pickle would lose them, too."""
    data = _physics(env)
    arrays = {name: getattr(data, name) for name in dir(data)} if data is not None else {}
    floats = {
        k: np.ascontiguousarray(v) for k, v in arrays.items() if isinstance(v, np.ndarray) and v.dtype.kind == 'f'
    }
    physics = {**floats, 'time': data.time} if data is not None else {}
    try:
        return {'attributes': attributes(env, _constants(env), seen), 'physics': encode(physics, set())}
    except TypeError as error:
        if hasattr(env, '_ezpickle_args'):
            raise NotImplementedError(f'{env!r}: is made anew when it is pickled') from error
        raise


def _set_physics(env: Any, state: dict[str, Any]) -> None:
    """MuJoCo's numbers, with what was worked out from them; not its indices, which its C code believes unseen."""
    data = _physics(env)
    for name, value in decode(state).items():
        held = getattr(data, name)
        if name == 'time':
            data.time = float(value)
        elif isinstance(held, np.ndarray) and held.dtype.kind == 'f' and held.shape == value.shape:
            held[...] = value  # others are of the contacts, and worked out anew


def _physics(env: Any) -> Any:
    """MuJoCo's state in an env of Gymnasium; None for another env."""
    data = vars(env).get('data')
    return data if type(data).__module__.startswith('mujoco') else None


def limits_itself(env: Any, wrappers: list) -> bool:
    """Whether an argument or attribute of a Gymnasium env, or one of the wrappers around it, is a time limit."""
    said = str(wrappers).lower().replace('_', '')
    own = any(getattr(env.unwrapped, name, None) for name in ('max_steps', 'max_episode_steps', '_max_episode_steps'))
    config = getattr(env.unwrapped, 'config', None)  # as highway-env has it
    own = own or (isinstance(config, dict) and bool(config.get('duration')))
    own = own or getattr(getattr(env.unwrapped, '_env', None), '_step_limit', math.inf) < math.inf  # as dm_control
    return own or 'timelimit' in said or any(name.startswith('max_num_') for name in env.spec.kwargs)


@functools.lru_cache  # once
def _warn_of_no_limit(env_id: str) -> None:
    logger.warning(
        "env '%s' has no time limit: an episode may never end; env.max_episode_steps=1000 would give it one",
        env_id,
    )


def find_spec(env_id: str) -> Any:
    """The registration of an id; the package that brings it is imported first, if its name is known or given."""
    import gymnasium

    module, _, name = env_id.rpartition(':')
    homes = (
        [module]
        if module
        else [home for prefix, home in HOMES.items() if prefix in name and name not in gymnasium.registry]
    )
    for home in homes:
        if home == HOMES['dm_control/']:  # which asks at its import what to draw with
            with contextlib.suppress(ExtraMissingError):
                draw_without_screen()
        try:
            importlib.import_module(home)
        except ModuleNotFoundError as error:
            text = f"env '{name}' comes with the package '{home}', which is not installed ({error}): pip install "
            raise ExtraMissingError(text + (f'"nervex[{EXTRAS[home]}]"' if home in EXTRAS else home)) from error
    return gymnasium.spec(name)


def known_spec(env_id: str) -> Any:
    """As ``find_spec``; an id that is not there names the nearest."""
    import gymnasium

    try:
        return find_spec(env_id)
    except gymnasium.error.Error as error:
        near = nearest(env_id, [*gymnasium.registry, *ENV_REGISTRY])
        hint = f"; did you mean '{near}'?" if near else f' ({error}).'
        text = "Ids of packages that register their own are written with their module, 'package:Id-v0'"
        raise UnknownNameError(f"Gymnasium has no env '{env_id}'{hint} {text}") from error


def make_gymnasium(env_id: str, kwargs: dict) -> tuple[Any, int | None]:
    """
    Overview:
        ``gymnasium.make`` without the wrappers that GymEnv and the env managers replace (checker, order, time limit).
    Returns:
        - made (:obj:`tuple`): the env, and the time limit of its registration (None: none)
    """
    import gymnasium

    spec = copy.deepcopy(known_spec(env_id))
    spec.order_enforce, limit = False, spec.max_episode_steps
    asked = kwargs.get('render_mode') not in (None, 'human') or 'MUJOCO_GL' in os.environ  # which its import obeys
    if asked and any(name in str(spec.entry_point) for name in ('mujoco', 'gymnasium_robotics')):
        draw_without_screen()
        if 'gymnasium.envs.mujoco' in str(spec.entry_point) and 'camera_id' not in kwargs:
            kwargs = {'camera_name': 'track', **kwargs}  # its own choice stays where the body began to walk
    try:
        return gymnasium.make(spec, disable_env_checker=True, max_episode_steps=-1, **kwargs), limit
    except gymnasium.error.DependencyNotInstalled as error:
        extra = next((EXTRAS[name] for name in EXTRAS if f'gymnasium[{name}]' in str(error)), None)
        remedy = f': pip install "nervex[{extra}]"' if extra else ''
        raise ExtraMissingError(f"env '{env_id}' needs a package that is not installed{remedy} ({error})") from error


def draw_without_screen() -> None:
    """Tell MuJoCo what to draw with where there is no screen; ExtraMissingError if the machine does not have it."""
    given, libraries = os.environ.get('MUJOCO_GL', '').lower(), {'egl': 'EGL', 'osmesa': 'OSMesa'}
    windows = given not in libraries if given else {'DISPLAY', 'WAYLAND_DISPLAY'} & os.environ.keys()
    if sys.platform != 'linux' or windows:
        return
    for backend in [given] if given else libraries:
        if ctypes.util.find_library(libraries[backend]):
            os.environ['MUJOCO_GL'] = backend
            return
    if given:
        package = {'egl': 'libegl1', 'osmesa': 'libosmesa6'}[given]
        raise ExtraMissingError(f'MUJOCO_GL={given}: this machine has no {libraries[given]}: apt-get install {package}')
    text = 'MuJoCo draws without a screen by EGL or OSMesa, of which this machine has none: apt-get install libegl1'
    raise ExtraMissingError(text + ', or libosmesa6')


def drawn(cfg: dict) -> dict[str, Any]:
    """What the env is made with, ``render_mode`` included."""
    return dict(cfg['make_kwargs'], **({} if cfg['render_mode'] is None else {'render_mode': cfg['render_mode']}))


def _with_role(cfgs: list[dict], role: str) -> list[dict]:
    for cfg in cfgs:  # copies already
        cfg['role'] = role
    return cfgs


def _same(action: Any) -> Any:
    return action
