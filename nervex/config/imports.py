"""Importing the modules that a config lists in ``import_names``, so that their registrations happen."""

import importlib
from typing import Any

from nervex.loader.problems import Problems
from nervex.utils.import_helper import import_problem


def import_listed(path: str, names: Any, problems: Problems) -> None:
    """Import every module of the list; what is wrong with any of them becomes one problem each."""
    names = [names] if isinstance(names, str) else [] if names is None else names
    if not isinstance(names, (list, tuple)):
        problems.add(path, f'got {names!r}, must be a list of module names')
        return
    for name in names:
        if not isinstance(name, str) or not name:
            problems.add(path, f'got {name!r} in the list, must be the dotted name of a module')
            continue
        try:
            importlib.import_module(name)
        except Exception as error:  # a user's module may raise anything while it is imported
            problems.add(path, f"module '{name}' cannot be imported: {import_problem(name, error)}")
