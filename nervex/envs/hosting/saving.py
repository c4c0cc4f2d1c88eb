"""One env in the middle of its episode as bytes: its plain state where it has one, else pickled and signed."""

import json
import pickle
from typing import Any

from nervex.envs.env.plain_state import decode, encode
from nervex.utils.trust import seal, unseal


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
