"""Functions that store rows, written out for one set of columns: no loop and no lookup is left in them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch

#: What the statements below raise where a value does not fit; the checked way finds out what it is.
_MISFIT = (TypeError, ValueError, LookupError, AttributeError, RuntimeError)
_SOURCE = """\
def put(data):
    try:
        if type(data) is dict:
            if len(data) != {count}:
                return 0
            number = clock[0]
            slot = number % {modulo}
            {row}
            clock[0] = number + 1
            return 1
        if type(data) is not Batch:
            return 0
        columns = data._columns
        if len(columns) != {count}:
            return 0
        v = columns[{first}]
        n = len(v)
        number = clock[0]
        start = number % {modulo}
        stop = start + n
        if stop > {capacity}:
            return 0
        rows = slice(start, stop)
        {block}
        clock[0] = number + n
        return n
    except Misfit:
        return 0


def put_values({values}):
    try:
        number = clock[0]
        slot = number % {modulo}
        {value_row}
        clock[0] = number + 1
        return slot
    except Misfit:
        return -1
"""


def compile_writers(
    arrays: dict[Any, np.ndarray], torch_names: set, capacity: int, modulo: int, clock: list[int]
) -> tuple[Callable, Callable]:
    """
    Overview:
        Two functions, made by ``exec`` for these columns, that store what fits without conversion as the next rows,
        move the clock on, and answer the number of rows. For anything else they answer 0, possibly after some columns
        have been written: then the checked way has to do the same rows. One-dimensional memory is written through
        memoryviews: they are faster than array assignment and refuse another dtype or length, where an array would
        convert and broadcast in silence. Rows ``cart_add1`` and ``cart_add8`` of the data bench need this: a loop over
        the columns takes 0.10 of 0.56 us more for a row (3.3 -> 2.8 times SB3), array assignment 0.19 of 0.98 us for
        eight (1.8 -> 1.5 times).
    Arguments:
        - arrays (:obj:`dict`): flat column name -> array with ``capacity`` slots
        - torch_names (:obj:`set`): columns that come as CPU tensors
        - clock (:obj:`list[int]`): holds the number of the next row, which lies in that slot modulo ``modulo``
    Returns:
        - put (:obj:`Callable`): for a row as a dict, or a Batch of rows that does not run over the end
        - put_values (:obj:`Callable`): for the values of one row in the order of the columns; answers its slot, or -1
    """
    scope: dict[str, Any] = {'clock': clock, 'Batch': Batch, 'Misfit': _MISFIT}
    scope.update(bools={bool, np.bool_}, no=np.False_)
    block: list[str] = []
    row: list[str] = []
    for k, (name, array) in enumerate(arrays.items()):
        _add_column(scope, block, row, k, name, array, name in torch_names)
    first = repr(next(iter(arrays)))
    if (again := f'v = columns[{first}]') in block[:2]:
        block.remove(again)  # the template has it
    value_row = '\n        '.join(row).replace('return 0', 'return -1')
    for k, name in enumerate(arrays):
        value_row = value_row.replace(f'data[{name!r}]', f'value{k}')
    source = _SOURCE.format(
        count=len(arrays),
        capacity=capacity,
        modulo=modulo,
        first=first,
        row='\n            '.join(row),
        block='\n        '.join(block),
        values=', '.join(f'value{k}' for k in range(len(arrays))),
        value_row=value_row,
    )
    exec(compile(source, '<row writers>', 'exec'), scope)
    return scope.pop('put'), scope.pop('put_values')  # no cycle: the arrays go when the ring does


def _add_column(
    scope: dict[str, Any], block: list[str], row: list[str], k: int, name: Any, array: np.ndarray, is_tensor: bool
) -> None:
    """The statements that store one column: of many rows into ``block``, of one row into ``row``."""
    key, width = repr(name), math.prod(array.shape[1:])
    strict = array.dtype.kind in 'biuf' and array.dtype.char not in 'eg' and array.dtype.isnative and array.size > 0
    scope.update({f'a{k}': array, f'd{k}': array.dtype, f's{k}': array.shape[1:]})
    if is_tensor:
        scope[f'd{k}'] = torch.from_numpy(array[:1]).dtype
        test = f'if v.dtype is not d{k} or v.requires_grad or not v.is_cpu or '
        block += [f'v = columns[{key}]', f'{test}v.numel() != n * {width}: return 0', f'a{k}[rows] = v.numpy()']
        row += [f'v = data[{key}]', f'{test}v.shape != s{k}: return 0', f'a{k}[slot] = v.numpy()']
    elif strict and array.ndim == 1:
        scope[f'm{k}'] = memoryview(array)  # type: ignore[arg-type]
        block += [f'm{k}[rows] = columns[{key}]']
        if array.dtype == bool:  # a memoryview takes anything for a truth value
            row += [f'v = data[{key}]', 'if v is not no and type(v) not in bools: return 0', f'm{k}[slot] = v']
        else:
            row += [f'm{k}[slot] = data[{key}]']
    elif strict and array.ndim == 2:
        scope[f'm{k}'] = memoryview(array.reshape(-1))  # type: ignore[arg-type]
        once = f'r{width} = slice(start * {width}, stop * {width})'
        block += [
            *([once] if once not in block else []),
            f'v = columns[{key}]',
            'if len(v) != n or v.ndim != 2: return 0',  # that they are as wide is seen by the memoryview
            f'm{k}[r{width}] = v.ravel()',
        ]
        once = f'i{width} = slot * {width}; j{width} = i{width} + {width}'  # columns of equal width share it
        row += [*([once] if once not in row else []), f'm{k}[i{width}:j{width}] = data[{key}]']
    else:
        test = f'if v.dtype is not d{k} or '
        block += [f'v = columns[{key}]', f'{test}v.size != n * {width}: return 0', f'a{k}[rows] = v']
        if array.dtype == object and array.ndim == 1:
            row += [f'a{k}[slot] = data[{key}]']
        else:
            row += [f'v = data[{key}]', f'{test}v.shape != s{k}: return 0', f'a{k}[slot] = v']
