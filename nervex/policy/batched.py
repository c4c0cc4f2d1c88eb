"""The mark by which a policy method says: I take N transitions at once."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar('F', bound=Callable[..., Any])


def batched(method: F) -> F:
    """
    Overview:
        Marks a policy method that takes all ready envs in one call (columns), instead of one call per env (rows).
        The mark sits on the function itself: an override without it is called once per row with the documented types,
        which is slower and never wrong. ``check_batched`` proves that both forms agree.
    """
    method.__nervex_batched__ = True  # type: ignore[attr-defined]
    return method


def is_batched(method: Callable[..., Any]) -> bool:
    """Whether a (bound) method carries the mark itself; an override does not inherit it."""
    return getattr(method, '__nervex_batched__', False)


def name_of(hook: Callable[..., Any]) -> str:
    """A hook for messages: ``MyPolicy._process_transition``."""
    owner = getattr(hook, '__self__', None)
    name = getattr(hook, '__name__', repr(hook))
    return name if owner is None else f'{type(owner).__name__}.{name}'
