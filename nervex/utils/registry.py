"""Registry: a name that a config may use -> a class; built-ins are ``module:attribute``, imported on first use."""

import importlib
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from nervex.utils.errors import DuplicateNameError, UnknownNameError, unknown_name
from nervex.utils.import_helper import load_attribute

logger = logging.getLogger(__name__)


class Registry(Mapping[str, Any]):
    """
    Overview:
        Maps names to classes (or functions). A built-in is given as a ``'module:attribute'`` string, so that listing
        names imports nothing. A user's registration of a built-in name replaces it and logs one warning; two user
        classes under one name are an error that names both files. It reads like a dict: ``registry[name]`` is ``get``.
    Interfaces:
        register, get, build, query, query_details, and those of a Mapping
    """

    def __init__(self, what: str = 'entry', builtins: dict[str, str] | None = None) -> None:
        self.what = what
        self._entries: dict[str, Any] = dict(builtins or {})
        self._builtin_origin = dict(self._entries)

    def register(self, name: str, target: Any = None) -> Callable[[Any], Any] | Any:
        """
        Overview:
            ``register(name, cls)`` as a call, ``@register(name)`` as a decorator (decorators stack).
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f'{self.what} registry: a name is a non-empty string, got {name!r}')
        if target is None:
            return lambda cls: self.register(name, cls)
        old = self._entries.get(name)
        again = old is not None and _same(old, target)
        if old is not None and not again:
            built_in = self._builtin_origin.get(name)
            if built_in is None or not (isinstance(old, str) or _dotted(old) == built_in):
                raise DuplicateNameError(
                    f"{self.what} '{name}' is registered twice: {_origin(old)} and {_origin(target)}; rename one"
                )
            text = "%s '%s': the built-in %s is replaced by %s"
            logger.warning(text, self.what, name, built_in, _origin(target))
        if not (again and isinstance(old, str)):
            self._entries[name] = target
        return target

    def get(self, name: str) -> Any:  # type: ignore[override]
        """
        Overview:
            The class registered under ``name``, or what stands at a ``module:attribute``, as saved configs name a
            class; an unknown name raises UnknownNameError with the nearest ones.
        """
        if name not in self._entries:
            if (found := _named_elsewhere(name)) is not None:
                return found
            raise UnknownNameError(unknown_name(self.what, name, self._entries))
        entry = self._entries[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(':')
            entry = getattr(importlib.import_module(module), attribute)
            self._entries[name] = entry
        return entry

    def build(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Look up and call. An error raised inside the constructor passes through unchanged."""
        return self.get(name)(*args, **kwargs)

    def query(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._entries)

    def query_details(self, aliases: Iterable[str] | None = None) -> dict[str, str]:
        """Name -> ``module:attribute`` of all (or the given) names; imports nothing."""
        names = self.query() if aliases is None else list(aliases)
        for name in names:
            if name not in self._entries:
                raise UnknownNameError(unknown_name(self.what, name, self._entries))
        return {n: self._entries[n] if isinstance(self._entries[n], str) else _dotted(self._entries[n]) for n in names}

    __getitem__ = get

    def __contains__(self, name: object) -> bool:
        return name in self._entries or _named_elsewhere(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.query())

    def __len__(self) -> int:
        return len(self._entries)

    __hash__ = object.__hash__  # registries are told apart by what they are, not by what is in them
    __eq__ = object.__eq__

    def __repr__(self) -> str:
        return f'Registry({self.what}: {", ".join(self.query())})'


def _named_elsewhere(name: object) -> Any:
    """What stands at ``module:attribute``; None where nothing does."""
    if not isinstance(name, str) or ':' not in name:
        return None
    try:
        return load_attribute(name)
    except ValueError:
        return None


def _same(old: Any, new: Any) -> bool:
    """The same thing seen again: a built-in registering itself, or a module that was reloaded."""
    if isinstance(old, str):
        return old in (new, _dotted(new))
    return old is new or _origin(old) == _origin(new)


def _dotted(target: Any) -> str:
    return f'{getattr(target, "__module__", "?")}:{getattr(target, "__qualname__", repr(target))}'


def _file(target: Any) -> str:
    try:
        return inspect.getsourcefile(target) or '?'
    except TypeError:
        return '?'


def _origin(target: Any) -> str:
    return target if isinstance(target, str) else f'{_dotted(target)} ({_file(target)})'
