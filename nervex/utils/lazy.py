"""Packages whose names are imported when they are first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Exports = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def lazy_exports(package: str, homes: Mapping[str, str]) -> Exports:
    """
    Overview:
        What a package needs so that its names come from the modules where they live, each imported with the first use
        of one of its names:

            __getattr__, __dir__, __all__ = lazy_exports(__name__, {'Batch': 'nervex.data.batch'})
    Arguments:
        - package (:obj:`str`): name of the package
        - homes (:obj:`Mapping`): name -> module, or ``module:attribute`` where the name is another one there
    Returns:
        - exports (:obj:`tuple`): ``__getattr__``, ``__dir__`` and ``__all__`` of the package
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f'module {package} has no attribute {name!r}')
        module, _, attribute = homes[name].partition(':')
        value = getattr(import_module(module), attribute or name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names, sorted(homes)


def homes(modules: Mapping[str, str]) -> dict[str, str]:
    """
    Overview:
        The table for ``lazy_exports`` from one by module: 'module' -> 'its names, divided by blanks'.
    """
    return {name: module for module, names in modules.items() for name in names.split()}
