"""Checks for tests of networks."""

import warnings
from collections.abc import Sequence

import torch
from torch import nn


def is_differentiable(loss: torch.Tensor, model: nn.Module | Sequence[nn.Module], print_instead: bool = False) -> None:
    """
    Overview:
        Assert that the loss reaches every parameter of the model (or models), none of which may have a gradient yet;
        the error lists those that it does not reach.
    Arguments:
        - print_instead (:obj:`bool`): warn instead of raising
    """
    assert loss.dim() == 0, f'the loss must be a single number, got shape {tuple(loss.shape)}'
    models = [model] if isinstance(model, nn.Module) else list(model)
    prefixes = [f'{i}.' if len(models) > 1 else '' for i in range(len(models))]
    named = [(prefix + name, p) for prefix, m in zip(prefixes, models) for name, p in m.named_parameters()]
    early = [name for name, p in named if p.grad is not None]
    assert not early, f'these parameters have a gradient before backward: {", ".join(early)}'
    loss.backward()
    missed = [name for name, p in named if p.grad is None]
    if missed and print_instead:
        warnings.warn(f'the loss does not reach {", ".join(missed)}', stacklevel=2)
    else:
        assert not missed, f'the loss does not reach {", ".join(missed)}'
