"""Plugins around the call of the model itself: recorded for acting, gradients on or off."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from nervex.graph.acting import GraphedForward
from nervex.torch_utils.crossing import to_arrays, to_tensors
from nervex.utils import tree

from .plugin import IArmorStatelessPlugin


class GraphPlugin(IArmorStatelessPlugin):
    """
    Overview:
        For acting: runs the model without gradients; with few rows at a time on the CPU by ``GraphedForward``, two to
        four times as fast. Takes tensors, or NumPy arrays, which go to the model's device and back in one transfer
        each, and answers in kind; the sampling plugins follow. Recurrent states (``next_state``) stay tensors. A
        call with arguments for the model (``mode=...``) runs the model itself. Must be added before any other plugin.
    Arguments:
        - backend (:obj:`str`): 'numpy' or 'off', see ``GraphedForward``
        - after (:obj:`int`): calls that run the model itself before it is recorded
    """

    def __init__(self, backend: str = 'numpy', after: int = 0) -> None:
        self._backend, self._after, self._calls = backend, after, 0
        self._graphed: GraphedForward

    def bind(self, armor: Any) -> None:
        """Take what the plugin needs of the armor that it is put on."""
        if 'forward' in armor.__dict__:
            raise ValueError("the plugin 'graph' replaces the call of the model itself: add it before all others")
        parameter = next(armor.model.parameters(), None)
        self._device = torch.device('cpu') if parameter is None else parameter.device
        self._graphed = GraphedForward(armor.model, self._backend if self._device.type == 'cpu' else 'off')

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def eager(data: Any, *args: Any, **kwargs: Any) -> Any:
            arrays = any(isinstance(leaf, np.ndarray) for leaf in tree.leaves(data))
            with torch.no_grad():
                output = forward(to_tensors(data, self._device) if arrays else data, *args, **kwargs)
            if not arrays:
                return output
            return {name: part if name == 'next_state' else to_arrays(part) for name, part in output.items()}

        def graph_forward(data: Any, *args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            if kwargs:
                kwargs.pop('data_id', None)
            if args or kwargs or self._calls <= self._after or self._graphed.backend == 'off':
                return eager(data, *args, **kwargs)
            return self._graphed(data)

        return graph_forward

    def __getstate__(self) -> dict[str, Any]:
        """A copy records anew, when it is bound: the recording runs on the weights of this armor's model."""
        return {key: value for key, value in self.__dict__.items() if key != '_graphed'}

    def state_dict(self) -> dict[str, Any]:
        """The calls so far: both forms round differently, so a resumed run must change over at the same one."""
        return {'calls': self._calls}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue counting."""
        self._calls = state['calls']


class GradPlugin(IArmorStatelessPlugin):
    """
    Overview:
        Run forward with gradients (``enable_grad=True``) or without. Outputs without gradients are ordinary tensors
        that later losses may use.
    """

    def __init__(self, enable_grad: bool) -> None:
        self._enable_grad = bool(enable_grad)

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""
        enable_grad, switch, is_enabled = self._enable_grad, torch._C._set_grad_enabled, torch.is_grad_enabled

        def grad_forward(data: Any, *args: Any, **kwargs: Any) -> Any:
            before = is_enabled()
            switch(enable_grad)  # what the context managers of torch call, without making one of them a call
            try:
                return forward(data, *args, **kwargs)
            finally:
                switch(before)

        return grad_forward
