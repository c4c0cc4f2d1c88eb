"""Imports by name, with errors that say which part was missing."""

import importlib
import pkgutil
import traceback
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from nervex.utils.errors import ExtraMissingError, nearest

# package, or extra of Gymnasium -> the extra of nervex that brings it
EXTRAS = {
    **{'ale_py': 'atari', 'atari': 'atari', 'mujoco': 'mujoco', 'box2d': 'box2d', 'gymnasium_robotics': 'robotics'},
    **{'minigrid': 'minigrid', 'highway_env': 'highway', 'shimmy.dm_control_compatibility': 'dm_control'},
}


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
        text = f"cannot import '{name}': {import_problem(name, e)}"
        raise ModuleNotFoundError(text, name=e.name or name) from e


def load_attribute(path: str) -> Any:
    """
    Overview:
        ``'module:attribute'`` -> the object: the form in which a class or function stands in a saved config. ValueError
        where there is none.
    """
    module, sign, attribute = path.partition(':')
    if not sign:
        raise ValueError(f"got {path!r}, must be written 'module:name'")
    try:
        found = importlib.import_module(module)
        for name in attribute.split('.'):
            found = getattr(found, name)
    except (ImportError, AttributeError, SyntaxError, ValueError) as e:
        lacks = (e.name or '').partition('.')[0] if isinstance(e, ModuleNotFoundError) else ''
        remedy = f'; pip install "nervex[{EXTRAS[lacks]}]"' if lacks in EXTRAS else ''
        raise ValueError(f"{path!r} cannot be loaded as 'module:name': {e}{remedy}") from e
    return found


def import_problem(name: str, error: Exception) -> str:
    """
    Overview:
        Why a module could not be imported: the first part of its path that does not exist, with the nearest name; the
        package that it needs; or the line of it that fails.
    """
    if isinstance(error, SyntaxError):
        return f'it does not parse: {error.filename}:{error.lineno}: {error.msg}'
    if not isinstance(error, ModuleNotFoundError):
        return f'it failed: {type(error).__name__}: {error} ({raised_at(error)})'
    missing = error.name or name
    if not (name == missing or name.startswith(f'{missing}.')):
        return f"it was found, but needs '{missing}', which is not installed ({raised_at(error)})"
    parent, _, last = missing.rpartition('.')
    path = getattr(importlib.import_module(parent), '__path__', None) if parent else None
    if parent and path is None:
        return f"'{parent}' exists, but it is a file and not a package"
    near = nearest(last, (module.name for module in pkgutil.iter_modules(path)))
    whole = f'{parent}.{near}' if parent else near
    hint = f"; did you mean '{whole}{name[len(missing) :]}'?" if near else ''
    if parent:
        return f"'{parent}' exists but has no '{last}'{hint}"
    return f"there is no '{missing}' in the folder of the config, on PYTHONPATH or installed{hint}"


def raised_at(error: BaseException) -> str:
    """The file and line at which an error was raised, outside of the import machinery."""
    stack = traceback.extract_tb(error.__traceback__)
    frames = [f for f in stack if 'importlib' not in f.filename and f.filename != __file__]
    return f'{frames[-1].filename}:{frames[-1].lineno}' if frames else 'no further detail'


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
