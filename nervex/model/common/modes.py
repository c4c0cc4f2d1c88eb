"""What models share: several ways to be called, what they find in their input, how many heads they have."""

from collections.abc import Sequence
from typing import Any

import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.network.shapes import as_shape
from nervex.utils.errors import UnknownNameError, unknown_name


class ModeNet(nn.Module):
    """
    Overview:
        ``forward(data, mode=...)`` calls the method of that name. A subclass lists its methods in ``modes``; a call
        without a mode means the first.
    """

    modes: tuple[str, ...] = ()

    def forward(self, data: Any, mode: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """
        Arguments:
            - data (:obj:`dict`): input of the method
            - mode (:obj:`str | None`): name of the method, None is the first of ``modes``
            - kwargs: further arguments of the method
        Returns:
            - output (:obj:`dict`): what the method returns
        """
        name = self.modes[0] if mode is None else mode
        if name not in self.modes:
            raise UnknownNameError(unknown_name('mode', name, self.modes))
        return getattr(self, name)(data, **kwargs)


class ActorCriticBase(ModeNet):
    """
    Overview:
        A policy and what judges it in one model. A subclass writes the methods; where it has more of them, it lists all
        in ``modes``.
    Interfaces:
        forward, compute_action_value, compute_action
    """

    modes: tuple[str, ...] = ('compute_action_value', 'compute_action')

    def compute_action_value(self, data: Any) -> dict[str, Any]:
        """``logit`` and ``value`` of an input."""
        raise NotImplementedError(f'{type(self).__name__} needs a method compute_action_value(data)')

    def compute_action(self, data: Any) -> dict[str, Any]:
        """The ``logit`` alone."""
        raise NotImplementedError(f'{type(self).__name__} needs a method compute_action(data)')


def action_heads(action_dim: int | Sequence[int]) -> tuple[int, ...] | int:
    """
    Overview:
        Number of actions: an int (or a shape of length 1) is one head; a longer list is one head for each entry.
    """
    shape = as_shape(action_dim, 'action_dim')
    return shape[0] if len(shape) == 1 else shape


def as_flag(value: bool, name: str) -> bool:
    """A switch; a list of widths in its place is a mistake that would pass as True."""
    if not isinstance(value, bool):
        raise ValueError(f'{name} is True or False, got {value!r}; the widths of layers are hidden_dim_list=[...]')
    return value


def entry_of(data: Any, key: str) -> Any:
    """An entry that a model's input must have."""
    if isinstance(data, Tensor) or key not in data:
        got = 'one tensor' if isinstance(data, Tensor) else ', '.join(map(repr, data))
        raise UnknownNameError(f"this model needs '{key}' in its input, got {got}")
    return data[key]


def obs_of(data: Any) -> Any:
    """The observation of a model's input: ``data['obs']``, or ``data`` itself if it is a bare tensor."""
    if isinstance(data, Tensor):
        return data
    try:
        return data['obs']
    except (KeyError, TypeError, IndexError) as error:
        got = sorted(data) if isinstance(data, dict) else type(data).__name__
        raise UnknownNameError(f"a model takes a tensor or a dict with 'obs', got {got}") from error


def with_mask(output: dict[str, Any], data: Tensor | dict[str, Any]) -> dict[str, Any]:
    """The output, with the action mask of the input where it has one."""
    if not isinstance(data, Tensor) and 'action_mask' in data:
        output['action_mask'] = data['action_mask']
    return output
