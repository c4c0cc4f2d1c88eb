"""Models with several ways to be called: ``model(data, mode='compute_q')``."""

from typing import Any

import torch.nn as nn

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

    modes = ('compute_action_value', 'compute_action')

    def compute_action_value(self, data: Any) -> dict[str, Any]:
        """``logit`` and ``value`` of an input."""
        raise NotImplementedError(f'{type(self).__name__} needs a method compute_action_value(data)')

    def compute_action(self, data: Any) -> dict[str, Any]:
        """The ``logit`` alone."""
        raise NotImplementedError(f'{type(self).__name__} needs a method compute_action(data)')
