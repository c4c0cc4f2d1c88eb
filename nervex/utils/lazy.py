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

            __getattr__, __dir__, __all__ = lazy_exports(__name__, {'nervex.data.batch': 'Batch Row'})
    Arguments:
        - package (:obj:`str`): name of the package
        - homes (:obj:`Mapping`): module -> its names, divided by blanks; ``new=old`` where it is called ``old`` there
    Returns:
        - exports (:obj:`tuple`): ``__getattr__``, ``__dir__`` and ``__all__`` of the package
    """
    places = {name.partition('=')[0]: (module, name) for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f'module {package} has no attribute {name!r}')
        module, attribute = places[name]
        value = getattr(import_module(module), attribute.rpartition('=')[2])
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return get, names, sorted(places)
