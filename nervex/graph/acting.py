"""Forward passes for acting: a module's inference recorded once, then run as NumPy or bare torch calls."""

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

import numpy as np
import torch
from torch import nn

from nervex.graph.forms import compile_python
from nervex.graph.numpy_form import compile_numpy
from nervex.graph.program import Program, TraceError
from nervex.graph.recorded import Plan, Recorded, largest
from nervex.torch_utils.crossing import to_arrays
from nervex.utils import tree

BACKENDS = ('off', 'py', 'numpy')
_ROUNDING, _MOST_ROUNDING = 1e-6, 1e-3  # of the numbers that a call works with: what is left where they cancel out


class GraphedForward(Recorded):
    """
    Overview:
        ``module(data)`` without gradients, for few rows at a time: the first call with a kind of data records the
        forward pass, later calls run it as NumPy calls over the same weights (3-4 times as fast for one row of a
        small network), or, where an operator has no NumPy form, as bare torch calls. Weights that change in place are
        seen at once. What cannot be recorded runs as the module itself. Each step down is one line in the log.
    Notes:
        Python numbers in ``forward`` are frozen when it is recorded; draw and mix exploration outside. Results of the
        first calls and of every call that is a power of four are compared with the module. A recording works in memory
        of its own, so it belongs to the thread that first calls it; in others the module itself runs.
    Examples:
        >>> act = GraphedForward(model)
        >>> logit = act({'obs': obs})['logit']  # arrays in, arrays out; tensors in, tensors out
    """

    backends = BACKENDS

    def __init__(self, module: nn.Module, backend: str = 'numpy', forward: Callable[[Any], Any] | None = None) -> None:
        """
        Arguments:
            - module (:obj:`nn.Module`): what is called; its parts decide when a recording is out of date
            - backend (:obj:`str`): 'numpy', 'py' (bare torch calls) or 'off'
            - forward (:obj:`Callable | None`): another function of the data to record, e.g. a method of the module
        """
        super().__init__(f'acting of {type(module).__name__}', backend)
        self.module = module
        self._forward = forward or module
        self._thread: int | None = None

    @torch.no_grad()
    def eager(self, data: Any) -> Any:
        """The module itself, with the same kinds of data in and out."""
        if not any(isinstance(x, np.ndarray) for x in tree.leaves(data)):
            return self._forward(data)
        return to_arrays(self._forward(tree.map(_to_tensor, data)))

    def __call__(self, data: Any) -> Any:
        """
        Arguments:
            - data (:obj:`Any`): a dict of arrays or tensors (nested containers and None are fine), or one of them
        Returns:
            - result (:obj:`Any`): what the module returns, as arrays if the data was arrays
        """
        plan = self._last
        inputs = plan.inputs_from(data) if plan is not None else None
        if plan is None or inputs is None or self._thread != get_ident():
            return self._first_of_a_kind(data)
        plan.calls += 1
        return self._checked(plan, data, inputs) if plan.calls == plan.next_check else plan.run(*inputs)

    def _first_of_a_kind(self, data: Any) -> Any:
        if self._thread is None:
            self._thread = get_ident()
        if self.backend == 'off' or self._thread != get_ident():
            return self.eager(data)
        if any(isinstance(x, torch.Tensor) for x in tree.leaves(data)):
            return tree.map(_to_tensor, self(to_arrays(data)))
        plan, inputs = self._find(data)
        if plan is None:
            return self.eager(data)
        plan.calls += 1
        return self._checked(plan, data, inputs) if plan.calls == plan.next_check else plan.run(*inputs)

    def _record(self, data: Any) -> Plan:
        results: list[Any] = []

        def step(inputs: Any) -> list[torch.Tensor]:
            results[:] = [self._forward(inputs)]
            outputs = [x for x in tree.leaves(results[0]) if x is not None]
            if not all(isinstance(x, torch.Tensor) for x in outputs):
                raise TraceError('one of its results is no tensor and would be frozen')
            return outputs

        def compiled(program: Program, backend: str) -> Callable:
            if any(call.is_random for call in program.calls):
                raise TraceError('it draws random numbers')
            if backend == 'numpy':
                return compile_numpy(program, results[0])
            run = compile_python(program, results[0])
            return lambda *arrays: to_arrays(run(*map(torch.from_numpy, arrays)))

        with torch.no_grad():
            return Plan(*self._trace(step, data, [self.module], compiled), data)

    def _checked(self, plan: Plan, data: Any, inputs: Sequence) -> Any:
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
