"""How one model follows another."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.flat import FlatParameters


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
