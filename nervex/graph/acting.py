"""Forward passes for acting: a module's inference recorded once, then run as NumPy calls over the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from nervex.graph.recorded import Recorded
from nervex.torch_utils.crossing import to_arrays
from nervex.utils import tree

if TYPE_CHECKING:
    from nervex.graph.recording import Plan

BACKENDS = ('off', 'numpy')
ACTING_GRAPH_AFTER = 300  # calls; recording takes 3 ms, which acting for a few envs gains in so many
_ROUNDING, _MOST_ROUNDING = 1e-6, 1e-3  # of the numbers that a call works with: what is left where they cancel out


class GraphedForward(Recorded):
    """
    Overview:
        ``module(data)`` without gradients, for few rows at a time: the first call with a kind of data records the
        forward pass, later calls run it as NumPy calls over the same weights (3-4 times as fast for one row of a
        small network). Weights that change in place are seen at once. What cannot be recorded, or has an operator
        without NumPy form, runs as the module itself; ``eager_reason`` says why.
    Notes:
        Python numbers in ``forward`` are frozen when it is recorded; draw and mix exploration outside. Results of the
        first calls and of every call that is a power of four are compared with the module. A recording works in memory
        of its own, so it belongs to the thread that first calls it; in others the module itself runs.
    Arguments:
        - module (:obj:`nn.Module`): what is called; its parts decide when a recording is out of date
        - backend (:obj:`str`): 'numpy' or 'off'
    Interfaces:
        __call__ (with a dict of arrays or tensors, or one of them; nested containers and None are fine), eager
    Examples:
        >>> act = GraphedForward(model)
        >>> logit = act({'obs': obs})['logit']  # arrays in, arrays out; tensors in, tensors out
    """

    backends = BACKENDS

    def __init__(self, module: nn.Module, backend: str = 'numpy') -> None:
        super().__init__(f'acting of {type(module).__name__}', backend)
        self.module = module
        self._thread: int | None = None

    @torch.no_grad()
    def eager(self, data: Any) -> Any:
        """The module itself, with the same kinds of data in and out."""
        if not _has(np.ndarray, data):
            return self.module(data)
        return to_arrays(self.module(tree.map(_to_tensor, data)))

    def _find(self, data: Any) -> tuple[Plan | None, Sequence | None]:
        self._thread = self._thread or get_ident()
        return super()._find(data) if self._thread == get_ident() else (None, None)

    def _record(self, data: Any) -> Plan:
        from nervex.graph.numpy_form import compile_numpy, forward_step
        from nervex.graph.recording import record

        step, results = forward_step(self.module)
        with torch.no_grad():
            plan = record(step, data, [self.module], self._device, lambda program: compile_numpy(program, results[0]))
        if _has(torch.Tensor, data):
            of_arrays, to_kind = plan.run, (lambda x: x) if _has(np.ndarray, data) else _to_tensor
            plan.run = lambda *inputs: tree.map(to_kind, of_arrays(*to_arrays(inputs)))
        return plan

    def _checked(self, plan: Plan, data: Any, inputs: Sequence) -> Any:
        from nervex.graph.recording import largest

        ways: list[Any] = []

        def tensors(result: Any) -> dict[str, torch.Tensor]:
            ways.append(result)
            return {f'result {tree.label(path)}': _to_tensor(x) for path, x in tree.zip(result) if x is not None}

        scale = max(1.0, *(largest(_to_tensor(x)) for x in inputs))
        rounding = min(_ROUNDING * scale, _MOST_ROUNDING)
        same = self._agrees(plan, lambda: tensors(self.eager(data)), lambda: tensors(plan.run(*inputs)), rounding)
        return ways[1] if same else ways[0]


def _to_tensor(x: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(x)) if isinstance(x, np.ndarray) else x


def _has(kind: type, data: Any) -> bool:
    return any(isinstance(x, kind) for x in tree.leaves(data))
