"""The state of an env without pickle: in the words of JSON, of which nothing is executed when it is read."""

import base64
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

_GENERATORS = ('PCG64', 'PCG64DXSM', 'MT19937', 'Philox', 'SFC64')
_PICKLING = {'__getstate__', '__reduce__', '__reduce_ex__'}
_TAGS = ('__array__', '__number__', '__tuple__', '__dict__', '__generator__')


def attributes(owner: Any, constants: Sequence[str] = (), seen: set[int] | None = None) -> dict[str, Any]:
    """
    Overview:
        The attributes of an object as ``encode`` has them; a part with ``state_dict`` is asked for it. TypeError if
        there is more than that: another object, or state that is no attribute.
    Arguments:
        - constants (:obj:`Sequence[str]`): attributes that belong to how the object is made
        - seen (:obj:`set[int] | None`): see ``encode``
    """
    for base in type(owner).__mro__[:-1]:
        if not base.__flags__ & 1 << 9 or base.__dict__.get('__slots__'):  # bit 9: made by a class statement
            raise TypeError(f'{base.__name__} may have state that is no attribute')
        if (
            'state_dict' not in base.__dict__
            and base.__name__ != 'EzPickle'
            and not _PICKLING.isdisjoint(base.__dict__)
        ):
            raise TypeError(f'{base.__name__} says itself what its state is')
    seen = set() if seen is None else seen
    return {
        name: value.state_dict() if hasattr(type(value), 'state_dict') else encode(value, seen)
        for name, value in vars(owner).items()
        if name not in constants
    }


def set_attributes(owner: Any, state: dict[str, Any]) -> None:
    """Put back what ``attributes`` saw, into an object that is made in the same way."""
    for name, value in state.items():
        part: Any = getattr(owner, name, None)
        if name.startswith('__') or callable(part):
            raise ValueError(f'{name!r} is no state of a {type(owner).__name__}')
        if hasattr(part, 'load_state_dict'):
            part.load_state_dict(value)
        else:
            setattr(owner, name, decode(value))


def encode(value: Any, seen: set[int]) -> Any:
    """
    Overview:
        Numbers, strings, lists, tuples, dicts, arrays and NumPy's generators in the words of JSON. TypeError for
        anything else, for a path, and for what has two names (``seen``: what was met so far), as it would become two.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float):
        return value
    if kind is str:
        if os.sep in value or '..' in value:
            raise TypeError(f'{value!r} may be a path, which no state decides')
        return value
    if isinstance(value, np.generic):
        return {'__number__': _packed(np.asarray(value))}
    if id(value) in seen:
        raise TypeError(f'a {kind.__name__} with two names')
    if kind is not tuple:
        seen.add(id(value))
    if kind is np.ndarray and value.flags.c_contiguous:
        return {'__array__': _packed(value)}
    if kind is np.random.Generator:
        return {'__generator__': encode(value.bit_generator.state, set())}
    if kind is list:
        return [encode(part, seen) for part in value]
    if kind is tuple:
        return {'__tuple__': [encode(part, seen) for part in value]}
    if kind is dict:
        if len(value) == 1 and next(iter(value)) in _TAGS:  # is encoded already
            return value
        if all(type(key) is str and key not in _TAGS for key in value):
            return {key: encode(part, seen) for key, part in value.items()}
        return {'__dict__': [[encode(key, seen), encode(part, seen)] for key, part in value.items()]}
    raise TypeError(f'a {kind.__name__} is no plain value')


def decode(value: Any) -> Any:
    """What ``encode`` saw."""
    if isinstance(value, list):
        return [decode(part) for part in value]
    if isinstance(value, str):
        return encode(value, set())  # no path
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), '')
    if tag not in _TAGS:
        return {key: decode(part) for key, part in value.items()}
    held = value[tag]
    if tag in ('__array__', '__number__'):
        dtype, shape, text = held
        array = np.frombuffer(base64.b64decode(text), _number_kind(np.dtype(dtype))).reshape(shape).copy()
        return array if tag == '__array__' else array[()]
    if tag == '__generator__':
        state = decode(held)
        if state['bit_generator'] not in _GENERATORS:
            raise ValueError(f'{state["bit_generator"]!r}: no generator of NumPy')
        bits = getattr(np.random, state['bit_generator'])()
        bits.state = state
        return np.random.Generator(bits)
    parts = decode(held)
    return tuple(parts) if tag == '__tuple__' else dict(parts)


def _packed(array: np.ndarray) -> list[Any]:
    return [_number_kind(array.dtype).str, list(array.shape), base64.b64encode(array.tobytes()).decode()]


def _number_kind(dtype: np.dtype) -> np.dtype:
    if dtype.kind not in 'biufc':
        raise TypeError(f'an array of {dtype} is no plain value')
    return dtype
