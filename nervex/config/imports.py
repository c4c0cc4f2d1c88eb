"""Importing the modules that a config lists in ``import_names``, so that their registrations happen."""

import importlib
import importlib.util
import pkgutil
import traceback
from typing import Any

from nervex.loader.problems import Problems
from nervex.utils.errors import nearest


def import_listed(path: str, names: Any, problems: Problems) -> None:
    """Import every module of the list; what is wrong with any of them becomes one problem each."""
    if names is None:
        return
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, (list, tuple)):
        problems.add(path, f'got {names!r}, must be a list of module names')
        return
    for name in names:
        if not isinstance(name, str) or not name:
            problems.add(path, f'got {name!r} in the list, must be the dotted name of a module')
        else:
            _import_one(path, name, problems)


def _import_one(path: str, name: str, problems: Problems) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f'{missing}.'):
            problems.add(path, _not_found(name, missing))
        else:
            problems.add(path, f"module '{name}' needs '{missing}', which is not installed ({_where(error)})")
    except SyntaxError as error:
        problems.add(path, f"module '{name}' does not parse: {error.filename}:{error.lineno}: {error.msg}")
    except Exception as error:  # a user's module may raise anything while it is imported
        problems.add(path, f"importing module '{name}' failed: {type(error).__name__}: {error} ({_where(error)})")


def _not_found(name: str, missing: str) -> str:
    parent, _, last = missing.rpartition('.')
    if not parent:
        near = nearest(missing, (module.name for module in pkgutil.iter_modules()))
        hint = f"; did you mean '{near}{name[len(missing) :]}'?" if near else ''
        return f"module '{name}' does not exist: there is no package or file '{missing}' on the Python path{hint}"
    package = importlib.import_module(parent)
    if not hasattr(package, '__path__'):
        return f"module '{name}' does not exist: '{parent}' exists, but it is a file and not a package"
    near = nearest(last, (module.name for module in pkgutil.iter_modules(package.__path__)))
    hint = f"; did you mean '{parent}.{near}{name[len(missing) :]}'?" if near else ''
    return f"module '{name}' does not exist: package '{parent}' exists and has no '{last}'{hint}"


def _where(error: BaseException) -> str:
    stack = traceback.extract_tb(error.__traceback__)
    frames = [f for f in stack if 'importlib' not in f.filename and f.filename != __file__]
    return f'{frames[-1].filename}:{frames[-1].lineno}' if frames else 'no further detail'
