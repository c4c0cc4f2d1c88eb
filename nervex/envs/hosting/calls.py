"""Reading attributes and calling methods of an env from outside, also across a process border."""

from typing import Any


class Method:
    """Stands for a method, which stays with its env."""


METHOD = 'nervex.envs.hosting.calls.METHOD'  # a plain string: survives pickling with its meaning
SAVE, LOAD = 'nervex.envs.hosting.calls.SAVE', 'nervex.envs.hosting.calls.LOAD'  # asked of the host, not of the env
STEP_TIME = 'nervex.envs.hosting.calls.STEP_TIME'  # likewise


def ask_env(env: Any, name: str, call: tuple[tuple, dict] | None) -> Any:
    """The attribute ``name`` (METHOD if it can be called), or with ``call`` the method's answer."""
    value = getattr(env, name)
    if call is None:
        return METHOD if callable(value) else value
    args, kwargs = call
    return value(*args, **kwargs)
