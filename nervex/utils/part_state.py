"""What an exact resume saves of one part of a run, whatever the part is, and how that is put back."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nervex.utils import tree
from nervex.utils.import_helper import load_attribute

_PLAIN = (bool, int, float, str, type(None))
_ARRAY, _BATCH, _DEQUE = '__array__', '__batch__', '__deque__'


def state_of(part: Any) -> Any:
    """
    Overview:
        The state of a part: of its ``run_state_dict()`` if it has that, else of its ``state_dict()``; of a generator of
        torch or NumPy; of numbers, strings, arrays, tensors, and containers of all these, a copy. It loads with
        ``weights_only=True``. A tensor that is a view is copied, so that nothing larger is stored.
    """
    if isinstance(part, np.random.Generator):
        return part.bit_generator.state
    if _is_torch(part, 'Generator'):
        return part.get_state()
    if _is_torch(part, 'Tensor'):
        return part.detach().clone()
    if isinstance(part, (np.ndarray, np.generic)):
        return _array_state(np.array(part))
    if isinstance(part, _PLAIN):
        return part
    if isinstance(part, deque):
        return {_DEQUE: state_of(list(part)), 'maxlen': part.maxlen}
    if (parts := tree.children(part)) is not None:
        states = {key: state_of(value) for key, value in parts.items()}
        return {_BATCH: states} if hasattr(type(part), 'to_dict') else tree.rebuild(part, states)
    for method in ('run_state_dict', 'state_dict'):
        if hasattr(part, method):
            return getattr(part, method)()
    raise TypeError(f'{type(part).__name__}: a resume cannot save it; it needs state_dict() and load_state_dict(state)')


def _array_state(array: np.ndarray) -> dict[str, Any]:
    import torch  # not every part needs it

    if array.dtype == object:
        return {_ARRAY: state_of(array.reshape(-1).tolist()), 'shape': list(array.shape)}
    return {_ARRAY: torch.from_numpy(array)}


def put_back(owner: Any, name: str, state: Any) -> None:
    """Give the part ``owner.<name>`` the state that ``state_of`` saw."""
    part = getattr(owner, name)
    value = restored(state, part)
    if value is not part:
        setattr(owner, name, value)


def restored(state: Any, part: Any = None) -> Any:
    """What ``state_of`` saw: the ``part`` itself with that state if it is one that has a state, or a new value."""
    if isinstance(part, np.random.Generator):
        part.bit_generator.state = state
    elif _is_torch(part, 'Generator'):
        part.set_state(state)
    elif hasattr(part, 'run_state_dict'):
        part.load_run_state_dict(state)
    elif hasattr(part, 'load_state_dict'):
        part.load_state_dict(state)
    else:
        return _value(state, part)
    return part


def _value(state: Any, before: Any) -> Any:
    if isinstance(state, dict) and _BATCH in state:
        return load_attribute('nervex.data:Batch')(restored(state[_BATCH]))
    if isinstance(state, dict) and _DEQUE in state:
        return deque(restored(state[_DEQUE]), state['maxlen'])
    if isinstance(state, dict) and _ARRAY in state:
        if 'shape' not in state:
            return state[_ARRAY].numpy()
        objects = np.empty(len(state[_ARRAY]), dtype=object)
        objects[:] = restored(state[_ARRAY])
        return objects.reshape(state['shape'])
    if (parts := tree.children(state)) is None:
        return state
    known = tree.children(before) or {}
    return tree.rebuild(state, {key: restored(value, known.get(key)) for key, value in parts.items()})


def _is_torch(part: Any, kind: str) -> bool:
    torch = sys.modules.get('torch')
    return torch is not None and isinstance(part, getattr(torch, kind))


def named(owner: Any, listing: str) -> dict[str, Any]:
    """The attributes that ``listing`` of the class and its bases names, as far as they are there."""
    names = [name for cls in type(owner).__mro__ for name in vars(cls).get(listing, ())]
    return {name: getattr(owner, name) for name in dict.fromkeys(names) if hasattr(owner, name)}


class HasState:
    """
    Overview:
        What an exact resume saves is declared: ``resume_parts`` names attributes, each saved as ``state_of`` says under
        its name without underscore. A class names its own; those of its bases count too.
    """

    resume_parts: tuple[str, ...] = ()

    def state_dict(self) -> dict[str, Any]:
        """The state of the parts; loads with ``weights_only=True``."""
        return {name.lstrip('_'): state_of(part) for name, part in named(self, 'resume_parts').items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave; parts that it does not name stay as they are."""
        for name in named(self, 'resume_parts'):
            if name.lstrip('_') in state:
                put_back(self, name, state[name.lstrip('_')])


def undeclared_parts(owner: Any, declared: list[Any]) -> Iterator[str]:
    """
    Overview:
        The attributes that a resume would lose: those that are, or hold as an attribute, a generator of torch or NumPy
        or a part with ``run_state_dict``, and are not among the ``declared`` parts.
    """

    def remembers(part: Any) -> bool:
        is_generator = isinstance(part, np.random.Generator) or _is_torch(part, 'Generator')
        return is_generator or hasattr(type(part), 'run_state_dict')

    for name, part in vars(owner).items():
        inside = getattr(part, '__dict__', {}).values()
        if any(map(remembers, (part, *inside))) and not any(part is known for known in declared):
            yield name
