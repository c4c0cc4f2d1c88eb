"""The configs that are installed with app_zoo, by name."""

import importlib.util
import os

_ENDINGS = ('_default_config.py', '_config.py')


def builtin_configs() -> dict[str, str]:
    """
    Overview:
        Name -> path of every ``<folder>/entry/*_config.py`` in the installed app_zoo package, sorted by name. The name
        is the file's, without ``_default_config.py`` or ``_config.py``. Nothing is imported.
    """
    spec = importlib.util.find_spec('app_zoo')
    found: dict[str, str] = {}
    for root in (spec.submodule_search_locations or []) if spec else []:
        for folder, subfolders, files in os.walk(root):
            subfolders.sort()
            if os.path.basename(folder) != 'entry':
                continue
            for file in sorted(files):
                name = _config_name(file)
                if name:
                    found.setdefault(name, os.path.join(folder, file))
    return dict(sorted(found.items()))


def _config_name(file: str) -> str:
    for ending in _ENDINGS:
        if file.endswith(ending):
            return file[: -len(ending)]
    return ''
