"""What an exact resume saves of one part of a run, whatever the part is, and how that is put back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

_PLAIN = (bool, int, float, str, type(None))


def state_of(part: Any) -> Any:
    """
    Overview:
        The state of a part: of its ``run_state_dict()`` if it has that, else of its ``state_dict()``; of a generator of
        torch or NumPy; of a plain number or string, the value itself.
    """
    if isinstance(part, torch.Generator):
        return part.get_state()
    if isinstance(part, np.random.Generator):
        return part.bit_generator.state
    if isinstance(part, _PLAIN):
        return part
    for method in ('run_state_dict', 'state_dict'):
        if hasattr(part, method):
            return getattr(part, method)()
    raise TypeError(f'{type(part).__name__}: a resume cannot save it; it needs state_dict() and load_state_dict(state)')


def put_back(owner: Any, name: str, state: Any) -> None:
    """Give the part ``owner.<name>`` the state that ``state_of`` saw."""
    part = getattr(owner, name)
    if isinstance(part, torch.Generator):
        part.set_state(state)
    elif isinstance(part, np.random.Generator):
        part.bit_generator.state = state
    elif isinstance(part, _PLAIN):
        setattr(owner, name, state)
    else:
        getattr(part, 'load_run_state_dict' if hasattr(part, 'run_state_dict') else 'load_state_dict')(state)


def undeclared_parts(owner: Any, declared: list[Any]) -> Iterator[str]:
    """
    Overview:
        The attributes that a resume would lose: those that are, or hold as an attribute, a generator of torch or NumPy
        or a part with ``run_state_dict``, and are not among the ``declared`` parts.
    """

    def remembers(part: Any) -> bool:
        return isinstance(part, (torch.Generator, np.random.Generator)) or hasattr(type(part), 'run_state_dict')

    for name, part in vars(owner).items():
        inside = getattr(part, '__dict__', {}).values()
        if any(map(remembers, (part, *inside))) and not any(part is known for known in declared):
            yield name
