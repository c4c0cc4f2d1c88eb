"""What wrappers of Gym objects share, one form for all ages of the Gym interface, and how a config names wrappers."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from nervex.utils.import_helper import load_attribute
from nervex.utils.registry_factory import WRAPPER_REGISTRY


def reset_gym(env: Any, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
    """
    Overview:
        Begin an episode of a Gymnasium or an old gym env.
    Returns:
        - first (:obj:`tuple`): observation and info (an empty dict where the env gives none)
    """
    if seed is not None:
        if accepts(env.reset, 'seed') and accepts(getattr(env, 'unwrapped', env).reset, 'seed'):
            kwargs['seed'] = int(seed)
        elif hasattr(env, 'seed'):
            env.seed(int(seed))
    answer = env.reset(**kwargs)
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict):
        return answer
    return answer, {}


def step_gym(answer: tuple) -> tuple[Any, Any, bool, bool, dict]:
    """
    Overview:
        The answer of ``env.step`` as (obs, reward, terminated, truncated, info). In a 4-tuple the flag
        ``info['TimeLimit.truncated']`` of the old TimeLimit wrapper tells a time limit from a terminal state.
    """
    if len(answer) == 5:
        return answer
    if len(answer) != 4:
        raise ValueError(f'env.step() must return 4 or 5 values, got {len(answer)}: {answer!r}')
    obs, reward, done, info = answer
    truncated = bool(done) and bool(info.get('TimeLimit.truncated', False))
    return obs, reward, bool(done) and not truncated, truncated, info


def accepts(function: Any, name: str, by_stars: bool = True) -> bool:
    """Whether the function can be called with this keyword, perhaps as one of any."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return name in parameters or (by_stars and any(p.kind is p.VAR_KEYWORD for p in parameters.values()))


class GymWrapper:
    """
    Overview:
        Wraps a Gymnasium or an old gym env; answers always in the new form: ``reset`` gives (obs, info), ``step`` gives
        five values. Everything that is not overridden comes from the wrapped env; a wrapper of observations overrides
        ``observation`` alone.
    """

    def __init__(self, env: Any) -> None:
        self.env = env

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode; answers the first observation, as the class changes it."""
        obs, info = reset_gym(self.env, seed, **kwargs)
        return self.observation(obs), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, as the class changes it."""
        obs, *rest = step_gym(self.env.step(action))
        return (self.observation(obs), *rest)  # type: ignore[return-value]

    def observation(self, obs: Any) -> Any:
        """What becomes of an observation."""
        return obs

    @property
    def unwrapped(self) -> Any:
        """The env inside all wrappers."""
        return self.env.unwrapped

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__') or name == 'env':
            raise AttributeError(name)
        return getattr(self.env, name)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.env!r})'


class TimeLimit(GymWrapper):
    """Ends an episode as ``truncated`` after ``max_episode_steps`` steps, unless it has ended by itself."""

    def __init__(self, env: Any, max_episode_steps: int) -> None:
        super().__init__(env)
        if max_episode_steps < 1:
            raise ValueError(f'time_limit: max_episode_steps must be >= 1, got {max_episode_steps}')
        self._limit, self._steps = max_episode_steps, 0

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode."""
        self._steps = 0
        return super().reset(seed=seed, **kwargs)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, as the class changes it."""
        obs, reward, terminated, truncated, info = super().step(action)
        self._steps += 1
        return obs, reward, terminated, bool(truncated or (self._steps >= self._limit and not terminated)), info


class ActionRepeat(GymWrapper):
    """Every action is taken ``times`` times, or until the episode ends; rewards add up. Limits count actions."""

    def __init__(self, env: Any, times: int = 4) -> None:
        super().__init__(env)
        if times < 1:
            raise ValueError(f'action_repeat: times must be >= 1, got {times}')
        self._times = times

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, as the class changes it."""
        total = 0.0
        seen: list[Any] = []
        for _ in range(self._times):
            obs, reward, terminated, truncated, info = super().step(action)
            total, seen = total + reward, [*seen[-1:], obs]
            if terminated or truncated:
                break
        return self.shown(seen), total, terminated, truncated, info

    def shown(self, seen: list[Any]) -> Any:
        """What is seen of the last two observations."""
        return seen[-1]


def wrap(env: Any, specs: Sequence[Any], role: str | None = None) -> Any:
    """
    Overview:
        Apply wrappers, the first one innermost.
    Arguments:
        - specs (:obj:`Sequence`): each a name, a dict with ``type`` and the wrapper's arguments, or a function
          env -> env. ``only='actor'`` (or 'evaluator') in a dict leaves the wrapper out elsewhere
        - role (:obj:`str | None`): what the env is for; a wrapper may take it as its argument ``role``
    """
    for maker, kwargs, only in map(_read, specs):
        if only in (None, role):
            told = {'role': role} if accepts(maker, 'role', by_stars=False) else {}
            env = maker(env, **{**told, **kwargs})
    return env


def check_wrappers(specs: Any) -> list[Any]:
    """The setting ``env.wrappers`` as a list, or the error of the first entry that is none."""
    if not isinstance(specs, (list, tuple)):
        raise TypeError(f'must be a list of wrappers, got {specs!r}')
    for spec in specs:
        _read(spec)
    return list(specs)


def _read(spec: Any) -> tuple[Callable[..., Any], dict, str | None]:
    kwargs = dict(spec) if isinstance(spec, dict) else {'type': spec}
    maker, only = kwargs.pop('type', None), kwargs.pop('only', None)
    if isinstance(maker, str):  # registered, or as a saved config has a class of one's own
        maker = load_attribute(maker) if ':' in maker else WRAPPER_REGISTRY.get(maker)
    if not callable(maker):
        raise TypeError(f"env.wrappers: a name, a dict with 'type', or a function env -> env; got {spec!r}")
    if only not in (None, 'actor', 'evaluator'):
        raise ValueError(f"env.wrappers: only='actor' or only='evaluator', got {only!r}")
    return maker, kwargs, only
