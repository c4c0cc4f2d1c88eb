"""What an exact resume saves of one part of a run, whatever the part is, and how that is put back."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, str, type(None))


def state_of(part: Any) -> Any:
    """
    Overview:
        The state of a part: of its ``run_state_dict()`` if it has that, else of its ``state_dict()``; of a generator of
        torch or NumPy; of numbers, strings, arrays and tensors, and containers of all these, a copy.
    """
    if isinstance(part, _PLAIN):
        return part
    if isinstance(part, np.random.Generator):
        return part.bit_generator.state
    if _is_torch(part, 'Generator'):
        return part.get_state()
    for method in ('run_state_dict', 'state_dict'):
        if hasattr(part, method):
            return getattr(part, method)()
    if isinstance(part, np.ndarray) or _is_torch(part, 'Tensor'):
        import torch  # not every part needs it

        return torch.as_tensor(part).detach().clone()
    if isinstance(part, dict):
        return {key: state_of(value) for key, value in part.items()}
    if isinstance(part, (list, tuple, set, deque)):
        return [state_of(value) for value in part]
    raise TypeError(f'{type(part).__name__}: a resume cannot save it; it needs state_dict() and load_state_dict(state)')


def put_back(owner: Any, name: str, state: Any) -> None:
    """Give the part ``owner.<name>`` the state that ``state_of`` saw."""
    part = getattr(owner, name)
    value = _restored(part, state)
    if value is not part:
        setattr(owner, name, value)


def _restored(part: Any, state: Any) -> Any:
    """The part itself with that state, or a value of its kind."""
    if isinstance(part, np.random.Generator):
        part.bit_generator.state = state
    elif _is_torch(part, 'Generator'):
        part.set_state(state)
    elif hasattr(part, 'run_state_dict'):
        part.load_run_state_dict(state)
    elif hasattr(part, 'load_state_dict'):
        part.load_state_dict(state)
    elif isinstance(part, np.ndarray):
        return state.numpy().copy()
    elif isinstance(part, dict):
        return {key: _restored(part.get(key), value) for key, value in state.items()}
    elif isinstance(part, deque):
        return deque(state, part.maxlen)
    else:
        return type(part)(state) if isinstance(part, (list, tuple, set)) else state
    return part


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
