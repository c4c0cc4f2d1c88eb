"""Where the tensors of a policy live."""

from typing import Any

import torch


def to_device(value: Any, device: torch.device) -> Any:
    """Tensors inside dicts and lists to ``device``; float64 becomes float32, everything else keeps its dtype."""
    if isinstance(value, torch.Tensor):
        if value.dtype is torch.float64:
            return value.to(device, torch.float32)
        return value if value.device == device else value.to(device)
    if isinstance(value, dict):
        return {key: to_device(item, device) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, '_fields'):
        return type(value)(to_device(item, device) for item in value)
    return value
