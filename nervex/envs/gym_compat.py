"""One reset and one step for all ages of the Gym interface: with or without seeds and infos, 4- or 5-tuples."""

import inspect
from typing import Any


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


def accepts(function: Any, name: str) -> bool:
    """Whether the function can be called with this keyword."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
