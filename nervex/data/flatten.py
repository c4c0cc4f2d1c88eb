"""Nested columns as one flat dict, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nervex.data.batch import Batch


def flatten(columns: Mapping | Batch, prefix: tuple = ()) -> dict:
    """A flat dict of all columns: the key is the plain name, or a tuple of names where the column is nested."""
    flat: dict = {}
    for name, column in columns.items():
        if isinstance(column, (Batch, dict, Mapping)):
            flat.update(flatten(column, (*prefix, name)))
        else:
            flat[(*prefix, name) if prefix else name] = column
    return flat


def unflatten(flat: Mapping) -> dict:
    """The inverse of ``flatten``; nested parts become Batches."""
    out: dict = {}
    for name, column in flat.items():
        if type(name) is tuple:
            node = out
            for part in name[:-1]:
                node = node.setdefault(part, {})
            node[name[-1]] = column
        else:
            out[name] = column
    return {k: _nest(v) if isinstance(v, dict) else v for k, v in out.items()}


def _nest(node: dict) -> Batch:
    return Batch.of({k: _nest(v) if isinstance(v, dict) else v for k, v in node.items()})


def column_label(name: Any) -> str:
    """A flat name for people: ``'obs.image'``."""
    return '.'.join(map(str, name)) if type(name) is tuple else str(name)
