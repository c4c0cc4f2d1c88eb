"""What wrappers of Gym objects share, and how a config names them."""

from collections.abc import Callable, Sequence
from typing import Any

from nervex.envs.gym_compat import reset_gym, step_gym
from nervex.utils.import_helper import load_attribute
from nervex.utils.registry_factory import WRAPPER_REGISTRY


class GymWrapper:
    """
    Overview:
        Wraps a Gymnasium or an old gym env; answers always in the new form: ``reset`` gives (obs, info), ``step`` gives
        five values. Everything that is not overridden comes from the wrapped env.
    """

    def __init__(self, env: Any) -> None:
        self.env = env

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> tuple[Any, dict]:
        """Begin an episode; answers the first observation, as the class changes it."""
        return reset_gym(self.env, seed, **kwargs)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        """One step, as the class changes it."""
        return step_gym(self.env.step(action))

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


def wrap(env: Any, specs: Sequence[Any], role: str | None = None) -> Any:
    """
    Overview:
        Apply wrappers, the first one innermost.
    Arguments:
        - specs (:obj:`Sequence`): each a name, a dict with ``type`` and the wrapper's arguments, or a function
          env -> env. ``only='actor'`` (or 'evaluator') in a dict leaves the wrapper out elsewhere
        - role (:obj:`str | None`): what the env is for
    """
    for spec in specs:
        maker, kwargs, only = _read(spec)
        if only in (None, role):
            if maker is _atari():
                kwargs = {'role': role, **kwargs}
            env = maker(env, **kwargs)
    return env


def check_wrappers(specs: Any) -> list[Any]:
    """The setting ``env.wrappers`` as a list, or the error of the first entry that is none."""
    if not isinstance(specs, (list, tuple)):
        raise TypeError(f'must be a list of wrappers, got {specs!r}')
    for spec in specs:
        _read(spec)
    return list(specs)


def _read(spec: Any) -> tuple[Callable[..., Any], dict, str | None]:
    if callable(spec):
        return spec, {}, None
    if isinstance(spec, str):
        return _named(spec), {}, None
    if not isinstance(spec, dict) or 'type' not in spec:
        raise TypeError(f"env.wrappers: a name, a dict with 'type', or a function env -> env; got {spec!r}")
    kwargs = {k: v for k, v in spec.items() if k not in ('type', 'only')}
    only = spec.get('only')
    if only not in (None, 'actor', 'evaluator'):
        raise ValueError(f"env.wrappers: only='actor' or only='evaluator', got {only!r}")
    maker = spec['type'] if callable(spec['type']) else _named(spec['type'])
    return maker, kwargs, only


def _named(name: str) -> Callable[..., Any]:
    """A registered wrapper, or ``'module:name'``, as a saved config has a class of one's own."""
    return load_attribute(name) if ':' in str(name) else WRAPPER_REGISTRY.get(name)


def _atari() -> Any:
    from nervex.envs.wrappers.atari import wrap_atari

    return wrap_atari
