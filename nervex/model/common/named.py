"""Nets with a name of their own: a general net with some of its parts chosen."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
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


def widths_of(embedding_dim: int, hidden_dim_list: Sequence[int] | None, *before: int) -> list[int]:
    """
    Overview:
        Widths of an encoder's layers: ``hidden_dim_list``, or those before and then ``embedding_dim``.
    """
    if hidden_dim_list is not None:
        return list(hidden_dim_list)
    if not isinstance(embedding_dim, int) or embedding_dim < 1:
        raise ValueError(
            f'embedding_dim is the size of the features, one positive int, got {embedding_dim!r}; '
            'the widths of several layers are hidden_dim_list=[...]'
        )
    return [*before, embedding_dim]


# ---- what the settings of a part may be ----
def fc(norm: bool = False) -> dict[str, Any]:
    """An encoder of linear layers."""
    return {'norm': norm}


def conv(
    channels: Sequence[int] = (32, 64, 64),
    kernels: Sequence[int] = (8, 4, 3),
    strides: Sequence[int] = (4, 2, 1),
    layout: str = 'auto',
) -> dict[str, Any]:
    """An encoder of convolutions."""
    return {'encoder_type': 'conv', 'channels': channels, 'kernels': kernels, 'strides': strides, 'layout': layout}


def memory(lstm_type: str = 'lstm', lstm_hidden_dim: int | None = None, lstm_layer_num: int = 1) -> dict[str, Any]:
    """An LSTM or GRU behind the encoder."""
    return {'lstm_type': lstm_type, 'hidden_dim': lstm_hidden_dim, 'num_layers': lstm_layer_num}
