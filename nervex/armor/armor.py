"""Armor: the models of one role (main, target, teacher), each in its own BaseArmor, behind one object."""

import copy
from collections.abc import Callable
from typing import Any

import torch.nn as nn

from nervex.utils.errors import DuplicateNameError, UnknownNameError, unknown_name

from .base_armor import BaseArmor
from .plugin import add_plugin

_NAMES = ('main', 'target', 'teacher')


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
        if name not in _NAMES:
            raise UnknownNameError(unknown_name('armor model', name, _NAMES))
        if name in self._armors:
            raise DuplicateNameError(f"this armor already holds a '{name}' model; call remove_model('{name}') first")
        armor = self._armor_type(copy.deepcopy(self._armors['main'].model) if model is None else model)
        if name != 'main':
            add_plugin(armor, name, **kwargs)
        elif kwargs:
            raise TypeError(f"add_model('main') takes no settings, got {sorted(kwargs)}")
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
            hint = f" (add_model('{name}', ...) creates it)" if name in _NAMES else ''
            raise UnknownNameError(unknown_name('model of this armor', name, self._armors) + hint)
        return self._armors[name]

    def _route(self, name: str) -> tuple[BaseArmor, str]:
        prefix, _, rest = name.partition('_')
        if rest and prefix in ('target', 'teacher'):
            if prefix not in self._armors:
                raise AttributeError(f"armor.{name}: no '{prefix}' model here; add_model('{prefix}', ...) creates it")
            return self._armors[prefix], rest
        return self._armors['main'], name

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
