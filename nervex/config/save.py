"""Writing a config as YAML that ``read_config`` reads back."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from nervex.utils import tree
from nervex.utils.config_helper import FLOAT
from nervex.utils.file_helper import atomic_write
from nervex.utils.import_helper import load_attribute


class _Dumper(yaml.SafeDumper):
    """Quotes a string such as '1e-4', which our reader would take for a number."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_implicit_resolver('tag:yaml.org,2002:float', FLOAT, list('-+0123456789.'))


def config_text(cfg: Mapping) -> str:
    """What ``save_config`` writes."""
    return yaml.dump(plain_config(cfg), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def save_config(cfg: Mapping, path: str | os.PathLike) -> None:
    """
    Overview:
        Write ``cfg`` as YAML, whole or not at all. Tuples become lists; a class or function becomes its name as
        ``module:attribute``.
    """
    with atomic_write(os.fspath(path), 'w') as file:
        file.write(config_text(cfg))


def plain_config(value: Any) -> Any:
    """What YAML, and a checkpoint, can hold."""
    if isinstance(value, Mapping):
        return {str(key): plain_config(value[key]) for key in value}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_config(item) for item in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return value.item() if hasattr(value, 'item') else value
    if hasattr(value, 'tolist'):  # NumPy scalars and arrays, tensors
        return plain_config(value.tolist())
    name = getattr(value, '__qualname__', None)
    return f'{value.__module__}:{name}' if name and hasattr(value, '__module__') else repr(value)


def nameless(value: Any) -> Iterator[str]:
    """The paths of classes, functions and other objects that a saved config cannot give back to another process."""
    for path, part in tree.zip(value):
        if isinstance(part, str) or not isinstance(text := plain_config(part), str):
            continue
        try:
            found = None if text.startswith('__main__:') else load_attribute(text)
        except ValueError:
            found = None
        if found is None or found != part:
            yield tree.label(path)
