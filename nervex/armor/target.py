"""The plugin of target networks: follow another model by copies or by a running mean, buffers included."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.flat import FlatParameters

from .plugin import IArmorStatefulPlugin


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

    def state_dict(self) -> dict[str, Any]:
        """The count of updates since the last copy."""
        return {'count': self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue counting."""
        self._count = state['count']

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


@torch.no_grad()
def follow(model: nn.Module, source: nn.Module | Mapping[str, Tensor], theta: float = 1.0) -> None:
    """
    Overview:
        Move the parameters of ``model`` by the share ``theta`` towards ``source`` and copy the buffers; two flat
        modules, or parts, in one operation each. Nothing is written if the two do not fit.
    """
    if isinstance(source, nn.Module):
        pairs = _flat_pairs(model, source)
        if pairs is not None:
            for flat, source_flat in pairs:
                flat.copy_from(source_flat, theta)
            return
        state: Mapping[str, Tensor] = source.state_dict()
    elif isinstance(source, Mapping):
        state = source
    else:
        raise TypeError(f'a target follows a module or a state dict, got a {type(source).__name__}')
    own = model.state_dict()
    if own.keys() != state.keys() or any(own[k].shape != v.shape for k, v in state.items() if isinstance(v, Tensor)):
        raise ValueError(_misfit(own, state))
    parameters = [name for name, _ in model.named_parameters()]  # tied ones once: a second step would move them twice
    if theta == 1.0:
        torch._foreach_copy_([own[k] for k in parameters], [state[k] for k in parameters])
    else:
        torch._foreach_lerp_([own[k] for k in parameters], [state[k].to(own[k]) for k in parameters], theta)
    for name, _ in model.named_buffers():
        if name in own:  # not in there: a buffer that is no part of the state
            own[name].copy_(state[name])


def _flat_pairs(model: nn.Module, source: nn.Module) -> list[tuple[FlatParameters, FlatParameters]] | None:
    """
    Overview:
        Flat tensors that together are all of the two modules: of the modules themselves, or of their parts (an actor
        and a critic with an optimizer each). None if something is in no flat tensor.
    """
    flat, source_flat = FlatParameters.of(model), FlatParameters.of(source)
    if flat is not None and source_flat is not None:
        return [(flat, source_flat)]
    tables = (model._parameters, model._buffers, source._parameters, source._buffers)
    parts = [{name: part for name, part in m._modules.items() if part is not None} for m in (model, source)]
    if any(value is not None for table in tables for value in table.values()) or parts[0].keys() != parts[1].keys():
        return None
    pairs = []
    for name, part in parts[0].items():
        found = _flat_pairs(part, parts[1][name])
        if found is None:
            return None
        pairs += found
    return pairs


def _misfit(own: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    missing, foreign = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    shapes = [
        f'{k} {tuple(own[k].shape)} against {tuple(state[k].shape)}'
        for k in own
        if k in state and isinstance(own[k], Tensor) and own[k].shape != state[k].shape
    ]
    return f'the source does not fit the target model: missing {missing}, not in the target {foreign}, shapes {shapes}'
