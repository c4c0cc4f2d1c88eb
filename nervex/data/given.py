"""Rows as a user gives them to the buffers of a run."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nervex.data.batch import Batch, Row, has_length

logger = logging.getLogger(__name__)


def given_rows(data: Any, buffer_name: Any) -> tuple[Batch, Any]:
    """Pushed data as a Batch, and the names of the buffers that it is for."""
    if isinstance(data, (Mapping, Row)) or (isinstance(data, Batch) and not has_length(data)):
        data = [data]
    if not isinstance(data, Batch):
        if not isinstance(data, Iterable) or isinstance(data, (str, bytes)):
            raise TypeError(
                f'push_data: got {data!r} of type {type(data).__name__}; rows are a Batch, a dict (one row) or a list '
                "of dicts: push_data({'obs': obs, 'action': action, ...})"
            )
        rows = []
        for item in data:
            if isinstance(item, (Mapping, Batch)):
                rows.append(item)
            else:
                logger.error('push_data: a row must be a dict, got %s: it is left out', type(item).__name__)
        with_priority = ['priority' in row for row in rows]
        if any(with_priority) and not all(with_priority):  # the others get the largest one so far
            rows = [row if has else {**dict(row.items()), 'priority': None} for row, has in zip(rows, with_priority)]
        data = Batch.from_rows(rows)
    if 'buffer_name' in data._columns:
        columns = dict(data._columns)
        named = columns.pop('buffer_name')[0]
        return Batch.of(columns), buffer_name if buffer_name is not None else named
    return data, buffer_name


def own_objects(column: Any) -> Any:
    """A column of objects that shares none of them; arrays as they are."""
    return copy.deepcopy(column) if isinstance(column, np.ndarray) and column.dtype.hasobject else column
