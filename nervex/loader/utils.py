"""Loaders that change how another loader is applied."""

from typing import Any

from nervex.loader.base import Loader


def keep() -> Loader:
    """Accepts anything and answers it unchanged."""
    return Loader(True)


def raw(value: Any) -> Loader:
    """Answers ``value``, whatever it is given; as the last alternative, a default."""
    return Loader(lambda _: value)


def optional(loader: Any) -> Loader:
    """None passes; anything else goes through ``loader``."""
    inner = Loader(loader)
    what = f'{inner.what} or None' if inner.what else ''
    return Loader(lambda value: None if value is None else inner(value), what)


def check_only(loader: Any) -> Loader:
    """Raises as ``loader`` does, but answers the original value."""
    inner = Loader(loader)

    def load(value: Any) -> Any:
        inner(value)
        return value

    return Loader(load, inner.what)


def check(loader: Any) -> Loader:
    """Answers True or False: whether ``loader`` accepts the value."""
    return Loader(Loader(loader).check)
