"""Starting weights."""

import math

import torch.nn as nn


def orthogonal(module: nn.Module, gain: float = math.sqrt(2.0)) -> nn.Module:
    """Orthogonal weights and zero biases in all linear layers and convolutions of ``module``, which is returned."""
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, gain)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module


def orthogonal_out(module: nn.Module, gain: float) -> nn.Module:
    """As ``orthogonal``, with ``gain`` for the last linear layer only (0.01 makes a policy start almost uniform)."""
    orthogonal(module)
    last = [layer for layer in module.modules() if isinstance(layer, nn.Linear)][-1]
    nn.init.orthogonal_(last.weight, gain)
    return module
