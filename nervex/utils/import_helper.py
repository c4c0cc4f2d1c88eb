"""Imports by name, with errors that say which part was missing."""

import importlib
from collections.abc import Iterable
from types import ModuleType

from nervex.utils.errors import ExtraMissingError


def import_modules(names: Iterable[str] | str | None) -> list[ModuleType]:
    """
    Overview:
        Import modules by absolute dotted path, so that what they register becomes known.
    Arguments:
        - names (:obj:`Iterable[str] | str | None`): e.g. ``['my_project.policies']``; None and empty import nothing
    """
    if isinstance(names, str):
        names = [names]
    return [import_module(name) for name in names or []]


def import_module(name: str) -> ModuleType:
    """
    Overview:
        As ``importlib.import_module``; a missing module is reported by the first part of its path that does not
        exist, apart from a module that exists and fails to import something itself.
    """
    if not isinstance(name, str) or not name or not all(part.isidentifier() for part in name.split('.')):
        raise ValueError(f"import_names holds absolute dotted module paths such as 'my_project.policies', got {name!r}")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        missing = e.name or name
        if name == missing or name.startswith(f'{missing}.'):
            parent, _, last = missing.rpartition('.')
            found = f"'{parent}' exists but has no '{last}'" if parent else f"there is no '{missing}'"
            raise ModuleNotFoundError(
                f"cannot import '{name}': {found}. Is its folder in the working directory or on PYTHONPATH (or the "
                'package installed), and is the path spelt with dots, without .py?',
                name=missing,
            ) from e
        raise ModuleNotFoundError(
            f"cannot import '{name}': it was found, but needs '{missing}', which is not installed. Install that.",
            name=missing,
        ) from e


def require(name: str, package: str, what: str) -> ModuleType:
    """
    Overview:
        Import an optional package; if it is missing the error says what to install.
    Arguments:
        - package (:obj:`str`): for pip, e.g. ``'nervex[fast]'`` or ``'lz4'``
        - what (:obj:`str`): what needs it, e.g. ``'the lz4 compressor'``
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name is None or not (name == e.name or name.startswith(f'{e.name}.')):
            raise
        raise ExtraMissingError(f"{what} needs the package '{name}': pip install {package}", name=name) from e


def try_import(name: str) -> ModuleType | None:
    """The module, or None if it is not installed. An installed module that fails to import raises."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name is None or not (name == e.name or name.startswith(f'{e.name}.')):
            raise
        return None
