"""What a plugin is, how one comes onto an armor by its name, the armor of one model, and two plain plugins."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn

from nervex.utils.errors import UnknownNameError, unknown_name
from nervex.utils.part_state import HasState
from nervex.utils.registry_factory import ARMOR_PLUGIN_REGISTRY


class IArmorPlugin:
    """
    Overview:
        One piece of run-time behaviour around ``armor.forward``. Two ways to write one:

        - override ``wrap``: it gets the forward built so far and returns the new one (the plugin added last is the
          outermost); arguments of ``add_plugin`` go to ``__init__``;
        - override the class method ``register`` and replace ``armor.forward`` by hand.
    Interfaces:
        register, bind, wrap
    """

    @classmethod
    def register(cls, armor: Any, **kwargs: Any) -> None:
        """Create the plugin from ``kwargs`` and put it around ``armor.forward``."""
        try:
            inspect.signature(cls).bind(**kwargs)
        except TypeError as error:
            raise TypeError(f'{cls.__name__}: {error}; it takes {inspect.signature(cls)}') from error
        armor.attach(cls(**kwargs))

    def bind(self, armor: Any) -> None:
        """Called when the plugin is attached: here it may look at ``armor.model`` or give the armor a method."""

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """
        Arguments:
            - forward (:obj:`Callable`): ``forward(data, *args, **kwargs) -> output`` of the model and the inner plugins
        Returns:
            - wrapped (:obj:`Callable`): the same signature; it must not write into tensors or dicts that it was given
        """
        return forward


class IArmorStatelessPlugin(IArmorPlugin):
    """A plugin that remembers nothing between two calls of ``armor.forward``."""


class IArmorStatefulPlugin(IArmorPlugin, HasState):
    """
    Overview:
        A plugin with a memory. ``armor.reset(data_id=..., ...)`` reaches its ``reset``; its memory, the attributes in
        ``resume_parts``, is part of ``armor.run_state_dict()``.
    Interfaces:
        reset, state_dict, load_state_dict
    """

    #: names of keyword arguments of ``armor.reset`` meant for this plugin
    reset_kwargs: tuple[str, ...] = ()

    def reset(self, data_id: list[int] | None = None) -> None:
        """Forget; ``data_id`` names the rows (environments) concerned, None means all."""
        raise NotImplementedError(f'{type(self).__name__} is stateful and must say what reset means')


def register_plugin(name: str, plugin_type: type | None = None) -> Any:
    """
    Overview:
        Make a plugin class known by name: ``register_plugin('clip', ClipPlugin)`` or ``@register_plugin('clip')``.
    """
    return ARMOR_PLUGIN_REGISTRY.register(name, plugin_type)


def add_plugin(armor: Any, plugin_name: str | type, **kwargs: Any) -> None:
    """
    Overview:
        Put a plugin around ``armor.forward``, outside those that are there.
    Arguments:
        - armor (:obj:`BaseArmor`): a single-model armor (``Armor.add_plugin`` also takes the name of the model)
        - plugin_name (:obj:`str | type`): a registered name, or the plugin class itself
        - kwargs: the plugin's own settings
    """
    plugin_type = plugin_name if isinstance(plugin_name, type) else ARMOR_PLUGIN_REGISTRY.get(plugin_name)
    armor.add_plugin_type(plugin_type, kwargs, plugin_name if isinstance(plugin_name, str) else plugin_type.__name__)


def row_ids(data_id: Any) -> list[int]:
    """Ids of rows, given as a list, an array, a tensor or one int, as a list."""
    if isinstance(data_id, int):
        return [data_id]
    return [int(i) for i in (data_id.tolist() if hasattr(data_id, 'tolist') else data_id)]


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


class TeacherPlugin(IArmorStatelessPlugin):
    """
    Overview:
        Keeps the settings of a teacher where a loss finds them: ``Armor.teacher_cfg`` and ``model.teacher_cfg``.
    """

    def __init__(self, teacher_cfg: Any = None) -> None:
        self._cfg = teacher_cfg

    def bind(self, armor: Any) -> None:
        """Take what the plugin needs of the armor that it is put on."""
        armor.cfg = self._cfg
        armor.model.teacher_cfg = self._cfg


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
        forward, mode, reset, state_dict, load_state_dict, model, plugin, memory, remove_plugin, run_state_dict
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

    @property
    def memory(self) -> str | None:
        """The name of the plugin that keeps recurrent states; None: there is none."""
        return next((name for name, kind, _ in self._plugins if 'state' in getattr(kind, 'reset_kwargs', ())), None)

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
