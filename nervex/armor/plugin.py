"""What a plugin is, and how one comes onto an armor by its name."""

import inspect
from collections.abc import Callable
from typing import Any

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


class IArmorStatefulPlugin(IArmorPlugin):
    """
    Overview:
        A plugin with a memory. ``armor.reset(data_id=..., ...)`` reaches its ``reset``; its memory is part of
        ``armor.run_state_dict()``.
    Interfaces:
        reset, state_dict, load_state_dict
    """

    #: names of keyword arguments of ``armor.reset`` meant for this plugin
    reset_kwargs: tuple[str, ...] = ()

    def reset(self, data_id: list[int] | None = None) -> None:
        """Forget; ``data_id`` names the rows (environments) concerned, None means all."""
        raise NotImplementedError(f'{type(self).__name__} is stateful and must say what reset means')

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave."""


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
