"""A model with the plugins around its forward."""

from typing import Any

import torch.nn as nn

from nervex.utils.errors import UnknownNameError, unknown_name

from .plugin import IArmorPlugin, IArmorStatefulPlugin

#: keyword arguments that only a plugin understands -> that plugin, for the error text
_OWNERS = {'eps': 'eps_greedy_sample', 'state': 'hidden_state'}
#: methods that plugins may replace
_COMPOSED = ('forward', 'reset')


class BaseArmor:
    """
    Overview:
        Run-time container of one model. Plugins wrap ``forward`` once, when they are added; a call then goes straight
        through the composed chain. Subclass it and pass ``armor_type=`` to ``Armor`` to change the innermost forward.
    Interfaces:
        forward, mode, reset, state_dict, load_state_dict, model, plugin, remove_plugin, run_state_dict
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        # name, class, and the plugin itself, or the settings of one that changed the armor by hand
        self._plugins: list[tuple[str, Any, Any]] = []

    @property
    def model(self) -> nn.Module:
        """The model; assigning another one keeps the plugins, which are bound anew."""
        return self._model

    @model.setter
    def model(self, model: nn.Module) -> None:
        """Run another module from now on."""
        self._model = model
        self._compose()

    def forward(self, data: Any, param: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        """
        Overview:
            Run the model inside the plugins.
        Arguments:
            - data (:obj:`dict | torch.Tensor`): the model's input
            - param (:obj:`dict | None`): keyword arguments for the model's forward, e.g. ``{'mode': 'compute_q'}``
            - kwargs: what plugins read (``eps``, ``data_id``); the rest goes to the model like ``param``
        Returns:
            - output (:obj:`dict`): what the model gave, changed by the plugins
        """
        kwargs.pop('data_id', None)  # says which rows these are: of no meaning to a model
        if 'eps' in kwargs:
            raise TypeError(f"forward(..., eps=...) needs the plugin '{_OWNERS['eps']}': add it first")
        if kwargs:
            param = {**param, **kwargs} if param else kwargs
        return self._model(data, **param) if param else self._model(data)

    def mode(self, train: bool) -> None:
        """Training mode of the model on or off (dropout, BatchNorm, noisy layers)."""
        self._model.train(train)

    def reset(self, data_id: list[int] | None = None, **kwargs: Any) -> None:
        """
        Overview:
            Make the stateful plugins forget.
        Arguments:
            - data_id (:obj:`list | None`): rows concerned, None means all
            - kwargs: settings of single plugins, e.g. ``state`` of ``hidden_state``
        """
        stateful = [plugin for _, _, plugin in self._plugins if isinstance(plugin, IArmorStatefulPlugin)]
        for name in kwargs.keys() - {name for plugin in stateful for name in plugin.reset_kwargs}:
            hint = f"; it belongs to the plugin '{_OWNERS[name]}'" if name in _OWNERS else ''
            raise TypeError(f'reset(..., {name}=...): no plugin of this armor takes it{hint}')
        for plugin in stateful:
            plugin.reset(data_id=data_id, **{k: kwargs[k] for k in plugin.reset_kwargs if k in kwargs})

    def state_dict(self) -> dict[str, Any]:
        """``{'model': the model's state dict}``."""
        return {'model': self._model.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what ``state_dict`` gave."""
        self._model.load_state_dict(state_dict['model'])

    def plugin(self, name: str) -> Any:
        """The plugin object added under ``name`` (the last one, if there are several)."""
        return self._plugins[self._index(name)][2]

    def remove_plugin(self, name: str) -> None:
        """Take away the plugin added under ``name`` (the last one, if there are several)."""
        del self._plugins[self._index(name)]
        self._compose()

    def _index(self, name: str) -> int:
        names = [held for held, _, _ in self._plugins]
        if name not in names:
            raise UnknownNameError(unknown_name('plugin on this armor', name, names))
        return len(names) - 1 - names[::-1].index(name)

    def run_state_dict(self) -> dict[str, Any]:
        """Memory of the stateful plugins (counters, hidden states, random generators), for an exact resume."""
        return {key: plugin.state_dict() for key, plugin in self._with_memory().items()}

    def load_run_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what ``run_state_dict`` gave; the same plugins must be attached in the same order."""
        own = self._with_memory()
        if own.keys() != state.keys():
            raise UnknownNameError(f'plugin state of {sorted(state)} does not fit this armor, which has {sorted(own)}')
        for key, plugin in own.items():
            plugin.load_state_dict(state[key])

    def _with_memory(self) -> dict[str, Any]:
        plugins = {f'{i}.{name}': plugin for i, (name, _, plugin) in enumerate(self._plugins)}
        return {k: p for k, p in plugins.items() if isinstance(p, IArmorPlugin) and hasattr(p, 'state_dict')}

    def add_plugin_type(self, plugin_type: Any, kwargs: dict[str, Any], name: str) -> None:
        """Let ``plugin_type`` register itself here with ``kwargs``; used by ``add_plugin``."""
        if not callable(getattr(plugin_type, 'register', None)):
            raise TypeError(f"plugin '{name}' is {plugin_type!r}: it needs the class method register(armor, **kwargs)")
        before = len(self._plugins)
        plugin_type.register(self, **kwargs)
        # what did not attach itself has changed the armor by hand
        self._plugins[before:] = [(name, plugin_type, self._plugins[-1][2] if self._plugins[before:] else kwargs)]

    def attach(self, plugin: IArmorPlugin) -> None:
        """Put a plugin object around forward, outside those that are there."""
        self._plugins.append((type(plugin).__name__, type(plugin), plugin))
        self._put_on(plugin)

    def _put_on(self, plugin: IArmorPlugin) -> None:
        plugin.bind(self)
        self.forward = plugin.wrap(self.forward)  # type: ignore[method-assign]

    def _compose(self) -> None:
        """Build the chain of forwards anew from the plain one."""
        for name in _COMPOSED:
            self.__dict__.pop(name, None)
        for _, plugin_type, plugin in self._plugins:
            if isinstance(plugin, IArmorPlugin):
                self._put_on(plugin)
            else:
                plugin_type.register(self, **plugin)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles carry the plugins, never the composed chain: it would still run the old model."""
        return {k: v for k, v in self.__dict__.items() if k not in _COMPOSED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._compose()
