"""One env as its host sees it: made, asked, stepped (what it answers is converted and checked), and saved."""

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.envs.env.plain_state import decode, encode
from nervex.envs.hosting.block import InvalidStepError, write_row
from nervex.utils.trust import seal, unseal

FAILURES = (Exception, SystemExit)  # what an env may raise without ending the run
METHOD = 'nervex.envs.hosting.one_env.METHOD'  # stands for a method, which stays with its env; survives pickling


def make_env(env_fn: Callable[[dict], Any], cfg: dict) -> Any:
    """The env of a config; a Gym object is adapted."""
    env = env_fn(cfg)
    if callable(getattr(env, 'info', None)):
        return env
    from nervex.envs.gym_env import GymEnv

    return GymEnv(env)


def renewed_seed(seed: int, renewed: int, dynamic: bool | None) -> int:
    """The seed of an env that was replaced so often: it does not replay the episodes of those before it."""
    if not renewed or dynamic is False:
        return seed
    return int(np.random.SeedSequence([abs(seed), renewed]).generate_state(1)[0] % (2**31))


def ask_env(env: Any, name: str, call: tuple[tuple, dict] | None) -> Any:
    """The attribute ``name`` (METHOD if it can be called), or with ``call`` the method's answer."""
    value = getattr(env, name)
    if call is None:
        return METHOD if callable(value) else value
    args, kwargs = call
    return value(*args, **kwargs)


# ---- what it answers to a step: read where it lies, or converted and checked
def has_step_into(env: Any) -> bool:
    """
    Overview:
        Whether ``step_into`` may stand for ``step``: it is defined, and ``step`` is not overridden later, neither in a
        subclass nor on the object.
    """
    if not callable(getattr(type(env), 'step_into', None)) or 'step' in getattr(env, '__dict__', {}):
        return False
    order = type(env).__mro__
    into = next(i for i, base in enumerate(order) if 'step_into' in base.__dict__)
    step = next((i for i, base in enumerate(order) if 'step' in base.__dict__), len(order))
    return into <= step


def make_stepper(env: Any, reward_size: int) -> Callable[[Any, Any], tuple[Any, Any, Any, Any]]:
    """A function (action, row) -> (reward, terminated, truncated, info) that writes the next observation into row."""
    if has_step_into(env):
        return env.step_into if reward_size == 1 else _vector_reward(env.step_into, reward_size)
    step = env.step

    def step_into(action: Any, row: Any) -> tuple[Any, bool, bool, Any]:
        answer = step(action)
        if not isinstance(answer, tuple) or len(answer) not in (4, 5):
            raise InvalidStepError(f'step() must return BaseEnvTimestep(obs, reward, done, info), got {answer!r}')
        if len(answer) == 5:
            obs, reward, terminated, truncated, info = answer
            ended, cut = flag(terminated, 'terminated'), flag(truncated, 'truncated')
        else:
            obs, reward, done, info = answer
            ended, cut = (False, False) if done is False else _ending(done, info)
        write_row(row, obs)
        return reward if type(reward) is float else reward_of(reward, reward_size), ended, cut, info

    return step_into


def reward_of(reward: Any, size: int) -> Any:
    """A float, or a float32 vector of ``size`` numbers; everything else is an InvalidStepError."""
    array = np.asarray(reward)
    if array.dtype.kind not in 'biuf' or array.size != size:
        raise InvalidStepError(f'the reward must be {"a number" if size == 1 else f"{size} numbers"}, got {reward!r}')
    return float(array.reshape(-1)[0]) if size == 1 else array.reshape(size).astype(np.float32)


def flag(value: Any, name: str) -> bool:
    """A bool from a Python, NumPy or torch bool (or 0/1); None and the like are an InvalidStepError."""
    if type(value) is bool:
        return value
    if value is None or isinstance(value, (str, tuple, list, dict)) or np.size(value) != 1:
        raise InvalidStepError(f'{name} must be a bool, got {value!r}')
    return bool(value)


def _ending(done: Any, info: Any) -> tuple[bool, bool]:
    """(terminated, truncated) of a 4-tuple: the info tells whether it was only a time limit."""
    if not flag(done, 'done'):
        return False, False
    cut = isinstance(info, dict) and bool(info.get('truncated', info.get('TimeLimit.truncated', False)))
    return not cut, cut


def _vector_reward(step_into: Callable, size: int) -> Callable:
    def checked(action: Any, row: Any) -> tuple[Any, Any, Any, Any]:
        reward, terminated, truncated, info = step_into(action, row)
        return reward_of(reward, size), terminated, truncated, info

    return checked


# ---- in the middle of its episode, as bytes: its plain state where it has one, else pickled and signed
def save_env(env: Any, counters: list[Any], seed: tuple[int, bool | None] | None) -> bytes | None:
    """
    Overview:
        An env with its host's counters and its seed; None for an env that cannot be saved.
    """
    try:
        counters = encode(counters, set())
        state = _plain_state(env)
        if state is not None:
            return json.dumps([state, counters, seed]).encode()
        return seal(pickle.dumps((env, counters, seed)))
    except Exception:  # whatever an env's own __reduce__ may raise
        return None


def load_env(env: Any, saved: bytes) -> tuple[Any, list[Any], tuple[int, bool | None] | None]:
    """The env (this one with the saved state, or another one), its host's counters and its seed."""
    if saved.startswith(b'['):
        state, counters, seed = json.loads(saved)
        env.load_state_dict(state)
        return env, decode(counters), None if seed is None else (seed[0], seed[1])
    opened = unseal(saved)
    env.close()
    env, counters, seed = pickle.loads(opened)
    return env, decode(counters), seed


def _plain_state(env: Any) -> Any:
    """The state of an env that offers it without pickle; None for another one."""
    try:
        return encode(env.state_dict(), set()) if hasattr(type(env), 'state_dict') else None
    except TypeError:
        return None
