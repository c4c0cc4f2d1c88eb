"""Plugins that only set something: gradients on or off, the settings of a teacher."""

from collections.abc import Callable
from typing import Any

import torch

from .plugin import IArmorStatelessPlugin


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
