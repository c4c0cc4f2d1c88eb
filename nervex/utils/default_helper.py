"""Small helpers for dicts, lists, classes and seeds."""

import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np
import torch

logger = logging.getLogger(__name__)


def set_pkg_seed(seed: int, use_cuda: bool = False) -> None:
    """
    Overview:
        Seed the global generators of Python, NumPy and torch. The framework's own classes draw from generators of their
        own; this covers user code and libraries.
    Arguments:
        - use_cuda (:obj:`bool`): seed the generators of all CUDA devices too
    """
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise ValueError(f'a seed is an integer in [0, 2**32), got {seed!r}')
    random.seed(int(seed))
    np.random.seed(int(seed))
    torch.manual_seed(int(seed))
    if use_cuda and torch.cuda.is_available():
        torch.cuda.manual_seed_all(int(seed))


def lists_to_dicts(data: Sequence, recursive: bool = False) -> Any:
    """
    Overview:
        A sequence of dicts (or of namedtuples) becomes one dict (namedtuple) of lists; with ``recursive`` the dicts
        inside, too. ``lists_to_dicts([{'a': 1}, {'a': 3}]) == {'a': [1, 3]}``
    """
    if len(data) == 0:
        raise ValueError('lists_to_dicts needs at least one element')
    first = data[0]
    if isinstance(first, dict):
        columns = {k: [d[k] for d in data] for k in first}
        return {k: lists_to_dicts(c, True) if recursive and isinstance(c[0], dict) else c for k, c in columns.items()}
    if isinstance(first, tuple) and hasattr(first, '_fields'):
        return type(first)(*map(list, zip(*data)))
    raise TypeError(f'lists_to_dicts takes dicts or namedtuples, got {type(first).__name__}')


def dicts_to_lists(data: dict[Any, Sequence]) -> list[dict]:
    """A dict of equally long sequences becomes a list of dicts: the inverse of ``lists_to_dicts``."""
    lengths = {k: len(v) for k, v in data.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f'dicts_to_lists needs sequences of one length, got {lengths}')
    return [dict(zip(data, row)) for row in zip(*data.values())]


def squeeze(data: Any) -> Any:
    """The only element of a tuple, list or dict that has one; anything else as it is."""
    if isinstance(data, (tuple, list, dict)) and len(data) == 1:
        return next(iter(data.values() if isinstance(data, dict) else data))
    return data


def default_get(
    data: dict,
    name: str,
    default_value: Any = None,
    default_fn: Callable[[], Any] | None = None,
    judge_fn: Callable[[Any], bool] | None = None,
) -> Any:
    """``data[name]``, or a default, which ``default_fn`` may make and ``judge_fn`` must accept, else ValueError."""
    if name in data:
        return data[name]
    if default_value is None and default_fn is None:
        raise ValueError(f"'{name}' is missing and has no default; give default_value or default_fn")
    value = default_fn() if default_value is None and default_fn is not None else default_value
    if judge_fn is not None and not judge_fn(value):
        raise ValueError(f"the default of '{name}', {value!r}, does not pass its own check")
    return value


def list_split(data: list, step: int) -> tuple[list[list], list | None]:
    """Full pieces of ``step`` items, and the items left over (None if there are none)."""
    if step < 1:
        raise ValueError(f'step must be at least 1, got {step}')
    full = len(data) // step * step
    return [data[i : i + step] for i in range(0, full, step)], data[full:] or None


def error_wrapper(
    fn: Callable,
    default_ret: Any,
    warning_msg: str = '',
    errors: type[Exception] | tuple[type[Exception], ...] = Exception,
) -> Callable:
    """A function that answers ``default_ret`` and logs the error instead of raising it; for conveniences only."""

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except errors as e:
            name = getattr(fn, '__name__', fn)
            logger.warning('%s: %s: %s; using %r instead. %s', name, type(e).__name__, e, default_ret, warning_msg)
            return default_ret

    return wrapped


class LimitedSpaceContainer:
    """Counts places that may be taken, e.g. how many tasks may run at once."""

    def __init__(self, min_val: int, max_val: int) -> None:
        if not 0 <= min_val <= max_val:
            raise ValueError(f'expected 0 <= min_val <= max_val, got {min_val} and {max_val}')
        self.min_val, self.max_val, self.cur = min_val, max_val, max_val

    def get_residual_space(self) -> int:
        """Take all free places; returns how many they were."""
        free, self.cur = self.cur - self.min_val, self.min_val
        return free

    def release_space(self) -> None:
        """Give one place back; more than ``max_val`` there never are."""
        self.cur = min(self.max_val, self.cur + 1)

    def acquire_space(self) -> bool:
        """Take one place; False if none is free."""
        if self.cur <= self.min_val:
            return False
        self.cur -= 1
        return True

    def increase_space(self) -> None:
        """One place more."""
        self.max_val += 1
        self.cur += 1

    def decrease_space(self) -> None:
        """One place less; the last one stays."""
        self.max_val = max(self.max_val - 1, self.min_val)
        self.cur = min(self.cur, self.max_val)


def override(cls: type) -> Callable[[Callable], Callable]:
    """Mark a method as overriding one of ``cls``; a misspelt name is an error at import."""

    def check(method: Callable) -> Callable:
        if method.__name__ not in dir(cls):
            raise NameError(f'{method.__qualname__} overrides nothing: {cls.__name__} has no {method.__name__}')
        return method

    return check


def iter_mapping(iter_: Iterable[Any], mapping: Callable[[Any], Any]) -> Iterator[Any]:
    """Apply a function to every item, when it is asked for."""
    return map(mapping, iter_)


class SingletonMetaclass(type):
    """Metaclass of classes that have one instance a process, made at the first call; a subclass has its own."""

    _lock = threading.RLock()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        with SingletonMetaclass._lock:
            if '_instance' not in vars(cls):
                cls._instance: Any = super().__call__(*args, **kwargs)
            return cls._instance

    @property
    def instance(cls) -> Any:
        """The instance, made without arguments if there is none yet."""
        return cls()
