"""The front door: ``serial_pipeline``, ``parallel_pipeline`` and ``eval``, and the command line over them."""

import importlib
from typing import Any

_HOMES = {
    'serial_pipeline': 'nervex.entry.serial_entry',
    'arena': 'nervex.entry.arena_entry',
    'collect': 'nervex.entry.eval_entry',
    'eval': 'nervex.entry.eval_entry',
    'import_minari': 'nervex.entry.minari_entry',
    'offline_pipeline': 'nervex.entry.offline_entry',
    'parallel_pipeline': 'nervex.entry.parallel_entry',
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f'nervex.entry has no {name!r}; it has {", ".join(sorted(_HOMES))}')


__all__ = sorted(_HOMES)
