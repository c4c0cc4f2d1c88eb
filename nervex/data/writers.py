"""Functions that store rows, written out for one set of columns: no loop and no lookup is left in them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

_BLOCK = """\
def write_block(columns, start):
    if len(columns) != {count}:
        return 0
    v = columns[{first}]
    n = len(v)
    stop = start + n
    if stop > {capacity}:
        return 0
    rows = slice(start, stop)
    {body}
    return n
"""
_ROW = """\
def write_row(row, slot):
    if len(row) != {count}:
        return 0
    {body}
    return 1
"""


_VALUES = """\
def write_values(slot, {values}):
    {body}
    return 1
"""


_GATHER = """\
def gather(slots, out):
    {body}
"""


class Writers(NamedTuple):
    """The compiled functions; each of the first three returns the number of rows that it wrote."""

    block: Callable[..., int]  # (columns, first slot)
    row: Callable[..., int]  # (dict of one row's values, slot)
    values: Callable[..., int]  # (slot, the values of one row in the order of the columns)
    gather: Callable[..., None]  # (slots, arrays by column name that get the rows in these slots)


def compile_writers(arrays: dict[Any, np.ndarray], torch_names: set, capacity: int) -> Writers:
    """
    Overview:
        The writers for these columns. They store what fits without conversion; for anything else they return 0 or
        raise, possibly after some columns have been written, and the caller finds out why.
        One-dimensional memory is written through memoryviews: they are faster than array assignment and refuse another
        dtype or length, where an array would convert and broadcast in silence.
    Arguments:
        - arrays (:obj:`dict`): flat column name -> array with ``capacity`` slots
        - torch_names (:obj:`set`): columns that come as CPU tensors
    """
    scope: dict[str, Any] = {'bools': {bool, np.bool_}, 'no': np.False_}
    block: list[str] = []
    row: list[str] = []
    for k, (name, array) in enumerate(arrays.items()):
        key, width = repr(name), math.prod(array.shape[1:])
        strict = array.dtype.kind in 'biuf' and array.dtype.char not in 'eg' and array.dtype.isnative and array.size > 0
        scope.update({f'a{k}': array, f'd{k}': array.dtype, f's{k}': array.shape[1:]})
        if name in torch_names:
            scope[f'd{k}'] = torch.from_numpy(array[:1]).dtype
            test = f'if v.dtype is not d{k} or v.requires_grad or not v.is_cpu or '
            block += [f'v = columns[{key}]', f'{test}v.numel() != n * {width}: return 0', f'a{k}[rows] = v.numpy()']
            row += [f'v = row[{key}]', f'{test}v.shape != s{k}: return 0', f'a{k}[slot] = v.numpy()']
            continue
        if strict and array.ndim <= 2:
            scope[f'm{k}'] = memoryview(array.reshape(-1))
        if strict and array.ndim == 1:
            block += [f'm{k}[rows] = columns[{key}]']
            only_bools = ['if v is not no and type(v) not in bools: return 0'] if array.dtype == bool else []
            row += [f'v = row[{key}]', *only_bools, f'm{k}[slot] = v']
            continue
        if strict and array.ndim == 2:
            once = f'w{width} = slice(start * {width}, stop * {width}); n{width} = (n, {width})'
            block += [
                *([once] if once not in block else []),
                f'v = columns[{key}]',
                f'if v.shape != n{width}: return 0',
                f'm{k}[w{width}] = v.ravel()',
            ]
            once = f'w{width} = slice(slot * {width}, slot * {width} + {width})'  # columns of equal width share it
            row += [*([once] if once not in row else []), f'm{k}[w{width}] = row[{key}]']
            continue
        test = f'if v.dtype is not d{k} or '
        block += [f'v = columns[{key}]', f'{test}v.size != n * {width}: return 0', f'a{k}[rows] = v']
        if array.dtype == object and array.ndim == 1:
            row += [f'a{k}[slot] = row[{key}]']
        else:
            row += [f'v = row[{key}]', f'{test}v.shape != s{k}: return 0', f'a{k}[slot] = v']
    common = {
        'count': len(arrays),
        'first': repr(next(iter(arrays))),
        'capacity': capacity,
        'values': ', '.join(f'value{k}' for k in range(len(arrays))),
    }
    if block[0] == f'v = columns[{common["first"]}]':
        del block[0]  # the template has it
    single = '\n    '.join(row)
    gather = [f'a{k}.take(slots, 0, out[{name!r}], "clip")' for k, name in enumerate(arrays)]
    bodies = {_BLOCK: '\n    '.join(block), _ROW: single, _VALUES: single, _GATHER: '\n    '.join(gather)}
    for k, name in enumerate(arrays):
        bodies[_VALUES] = bodies[_VALUES].replace(f'row[{name!r}]', f'value{k}')
    for template, body in bodies.items():
        exec(compile(template.format(body=body, **common), '<row writers>', 'exec'), scope)
    return Writers(scope['write_block'], scope['write_row'], scope['write_values'], scope['gather'])
