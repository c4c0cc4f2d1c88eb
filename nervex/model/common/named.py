"""Nets with a name of their own: a general net with some of its parts chosen."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any


def named_net(defaults: Mapping[str, Any] | None = None, **parts: Any) -> Callable[[type], Any]:
    """
    Overview:
        Class decorator for a net that is its base class with some parts chosen. Arguments of the base class named
        ``..._kwargs`` hold the settings of a part; here a function takes their place: its arguments become arguments of
        the net, and it answers what the base class wants. So each setting is declared once, and a config that names
        one which the net does not have is told what it has.
    Arguments:
        - defaults (:obj:`Mapping | None`): other defaults of arguments of the base class
        - parts: argument of the base class -> function that makes it; or a value, and the argument disappears
    """
    own_defaults = dict(defaults or {})

    def name(cls: type) -> type:
        build = cls.__init__  # type: ignore[misc]
        made = {key: part for key, part in parts.items() if callable(part)}
        taken = {key: list(inspect.signature(part).parameters) for key, part in made.items()}
        parameters = [
            p.replace(default=own_defaults.get(p.name, p.default))
            for p in inspect.signature(build).parameters.values()
            if p.name not in parts and not p.name.endswith('_kwargs')
        ]
        for part in made.values():
            parameters += inspect.signature(part).parameters.values()
        signature = inspect.Signature(parameters)

        @functools.wraps(build)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            for key, part in parts.items():
                settings = {setting: given.pop(setting) for setting in taken.get(key, ())}
                given[key] = part(**settings) if key in made else part
            build(**given)

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[misc]
        return cls

    return name


def settings_of(
    sources: Mapping[Any, str], defaults: Mapping[str, Any] | None = None, **fixed: Any
) -> Callable[..., Any]:
    """
    Overview:
        A part for ``named_net``: its settings are these arguments of classes or functions, beside what is ``fixed``.
    Arguments:
        - sources (:obj:`Mapping`): class or function -> names of arguments
        - defaults (:obj:`Mapping | None`): where they are other ones
    """

    def part(**given: Any) -> dict[str, Any]:
        return {**fixed, **given}

    settings = [inspect.signature(source).parameters[n] for source, names in sources.items() for n in names.split()]
    part.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(default=(defaults or {}).get(p.name, p.default)) for p in settings]
    )
    return part


def memory(lstm_type: str = 'lstm', lstm_hidden_dim: int | None = None, lstm_layer_num: int = 1) -> dict[str, Any]:
    """An LSTM or GRU behind the encoder."""
    return {'lstm_type': lstm_type, 'hidden_dim': lstm_hidden_dim, 'num_layers': lstm_layer_num}
