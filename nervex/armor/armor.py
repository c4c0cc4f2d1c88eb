"""The models of one role behind one object: main, target, teacher; when the target follows; acting as a recording."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn as nn
from torch import Tensor

from nervex.armor.follow import follow
from nervex.armor.plugin import BaseArmor, IArmorStatefulPlugin, IArmorStatelessPlugin, add_plugin
from nervex.graph.acting import GraphedForward
from nervex.torch_utils.crossing import to_arrays, to_tensors
from nervex.utils import tree
from nervex.utils.errors import DuplicateNameError, UnknownNameError, unknown_name
from nervex.utils.part_state import HasState

_OTHERS = ('target', 'teacher')


class Armor:
    """
    Overview:
        Holds the main model and, when asked, a target and a teacher. Attributes go to the main one
        (``armor.forward``, ``armor.model``); with the prefix ``target_`` or ``teacher_`` to that one
        (``armor.target_forward``, ``armor.target_update``).
    Interfaces:
        add_model, remove_model, add_plugin, remove_plugin, forward, mode, reset, state_dict, load_state_dict, model
    """

    def __init__(self, model: nn.Module, armor_type: type[BaseArmor] = BaseArmor) -> None:
        self._armor_type = armor_type
        self._armors: dict[str, BaseArmor] = {'main': armor_type(model)}

    @property
    def forward(self) -> Callable[..., Any]:
        """Forward of the main model; written out because it is called at every step."""
        return self._armors['main'].forward

    def add_model(self, name: str, model: nn.Module | None = None, **kwargs: Any) -> None:
        """
        Overview:
            Add a second model and attach the plugin of the same name to it.
        Arguments:
            - name (:obj:`str`): ``'target'`` or ``'teacher'``
            - model (:obj:`nn.Module | None`): None takes a copy of the main model as it is now
            - kwargs: settings of that plugin, e.g. ``update_type='assign', update_kwargs={'freq': 100}``
        """
        if name in self._armors:
            raise DuplicateNameError(f"this armor already holds a '{name}' model; call remove_model('{name}') first")
        if name not in ('main', *_OTHERS):
            raise UnknownNameError(unknown_name('armor model', name, ('main', *_OTHERS)))
        armor = self._armor_type(copy.deepcopy(self._armors['main'].model) if model is None else model)
        if name != 'main':
            add_plugin(armor, name, **kwargs)
        self._armors[name] = armor

    def remove_model(self, name: str) -> None:
        """Drop a model and its plugins."""
        self._armor(name)
        del self._armors[name]

    def add_plugin(self, armor_name: str, plugin_name: str | type, **kwargs: Any) -> None:
        """Put a plugin around the forward of the model ``armor_name``, outside those that are there."""
        add_plugin(self._armor(armor_name), plugin_name, **kwargs)

    def remove_plugin(self, armor_name: str, plugin_name: str) -> None:
        """Take a plugin away again."""
        self._armor(armor_name).remove_plugin(plugin_name)

    def run_state_dict(self) -> dict[str, Any]:
        """Memory of all plugins by model name, for an exact resume."""
        return {name: armor.run_state_dict() for name, armor in self._armors.items()}

    def load_run_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what ``run_state_dict`` gave."""
        for name, plugin_state in state.items():
            self._armor(name).load_run_state_dict(plugin_state)

    def _armor(self, name: str) -> BaseArmor:
        if name not in self._armors:
            hint = f" (add_model('{name}', ...) creates it)" if name in _OTHERS else ''
            raise UnknownNameError(unknown_name('model of this armor', name, self._armors) + hint)
        return self._armors[name]

    def _route(self, name: str) -> tuple[BaseArmor, str]:
        prefix, _, rest = name.partition('_')
        if not rest or prefix not in _OTHERS:
            return self._armors['main'], name
        if prefix not in self._armors:
            raise AttributeError(f"armor.{name}: no '{prefix}' model here; add_model('{prefix}', ...) creates it")
        return self._armors[prefix], rest

    def __getattr__(self, name: str) -> Any:
        if name[:1] == '_':
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        owner, attribute = self._route(name)
        try:
            return getattr(owner, attribute)
        except AttributeError:
            public = sorted(a for a in dir(owner) if a[0] != '_')
            raise AttributeError(f'armor.{name}: ' + unknown_name('armor attribute', attribute, public)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name[:1] == '_':
            object.__setattr__(self, name, value)
        else:
            setattr(*self._route(name), value)


class TargetPlugin(IArmorStatefulPlugin):
    """
    Overview:
        Gives the armor ``update(source, direct=False)``. ``assign`` copies the source on every ``freq``-th call,
        ``momentum`` moves the parameters by ``p <- (1 - theta) p + theta source`` on every call. Buffers (running
        statistics of BatchNorm) are copied in both cases.
    Arguments:
        - update_type (:obj:`str`): ``'assign'`` or ``'momentum'``
        - update_kwargs (:obj:`dict | None`): ``{'freq': int}`` (assign) or ``{'theta': float}`` (momentum)
    """

    resume_parts = ('_count',)

    def __init__(self, update_type: str = 'assign', update_kwargs: Mapping[str, Any] | None = None) -> None:
        settings = dict(update_kwargs or {})
        needed = {'assign': 'freq', 'momentum': 'theta'}.get(update_type)
        if needed is None:
            raise ValueError(f"target update_type is 'assign' or 'momentum', got {update_type!r}")
        if set(settings) != {needed}:
            raise ValueError(f"'{update_type}' update takes update_kwargs={{'{needed}': ...}}, got {settings}")
        value = settings[needed]
        if update_type == 'assign' and not (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
            raise ValueError(f'target update freq counts calls of update: an integer of at least 1, got {value!r}')
        if update_type == 'momentum' and not 0.0 < value <= 1.0:
            raise ValueError(f'target momentum theta is the share of the source: in (0, 1], got {value!r}')
        self._freq = value if update_type == 'assign' else None
        self._theta = 1.0 if update_type == 'assign' else value
        self._count = 0

    def bind(self, armor: Any) -> None:
        """Take what the plugin needs of the armor that it is put on."""
        self._armor = armor
        armor.update = self.update

    def reset(self, data_id: list[int] | None = None) -> None:
        """Start counting calls anew; the parameters stay."""
        self._count = 0

    def update(self, source: nn.Module | Mapping[str, Tensor], direct: bool = False) -> None:
        """
        Overview:
            Follow ``source``.
        Arguments:
            - source (:obj:`nn.Module | Mapping`): the model to follow (fastest), or its state dict
            - direct (:obj:`bool`): copy now, whatever the type, and start counting anew
        """
        theta = self._theta
        if direct:
            self._count, theta = 0, 1.0
        elif self._freq is not None:
            self._count += 1
            if self._count % self._freq:
                return
        follow(self._armor.model, source, theta)


class GraphPlugin(IArmorStatelessPlugin, HasState):
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

    resume_parts = ('_calls',)  # both forms round differently, so a resumed run must change over at the same one

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
