"""Arithmetic on all columns at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any


class Arithmetic:
    """
    Overview:
        ``+ - * / // % **`` and their in-place forms for Batches: with a number or array on every column, with a Batch
        or dict column by column. In-place forms change the columns where they lie, so that views write through.
    """

    __slots__ = ()

    def __neg__(self) -> Any:
        return _apply(self, None, 'neg', lambda column, _: -column)


def _apply(batch: Any, other: Any, name: str, function: Callable) -> Any:
    out = {}
    by_name = isinstance(other, (Arithmetic, Mapping))
    if by_name and set(other.keys()) != set(batch.keys()):
        odd = sorted(set(other.keys()) ^ set(batch.keys()), key=str)
        raise ValueError(f'{name}: the operands differ in column(s) {odd}')
    for column_name, column in batch.items():
        try:
            out[column_name] = function(column, other[column_name] if by_name else other)
        except (TypeError, ValueError, RuntimeError) as e:
            kind = next(k for k in (TypeError, ValueError, RuntimeError) if isinstance(e, k))  # NumPy has its own ones
            raise kind(
                f"{name} does not work on column '{column_name}' of shape {_part(column, 'shape')} and dtype "
                f'{_part(column, "dtype")}: {e}'
            ) from e
    return type(batch).of(out)


def _part(column: Any, attribute: str) -> Any:
    return None if isinstance(column, Arithmetic) else getattr(column, attribute, type(column).__name__)


def _methods(name: str) -> dict[str, Callable]:
    plain, in_place = getattr(operator, name), getattr(operator, f'i{name}')

    def forward(self: Any, other: Any) -> Any:
        return _apply(self, other, name, plain)

    def backward(self: Any, other: Any) -> Any:
        return _apply(self, other, name, lambda column, value: plain(value, column))

    def inside(self: Any, other: Any) -> Any:
        self._columns.update(_apply(self, other, name, in_place)._columns)
        return self

    return {f'__{name}__': forward, f'__r{name}__': backward, f'__i{name}__': inside}


for _name in ('add', 'sub', 'mul', 'truediv', 'floordiv', 'mod', 'pow'):
    for _method, _function in _methods(_name).items():
        setattr(Arithmetic, _method, _function)
