"""Forward passes for acting: a module's inference recorded once, then run as NumPy or bare torch calls."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from nervex.graph.guard import GeneratorWatch, Guard, ModuleWatch, RandomState
from nervex.graph.numpy_form import compile_numpy
from nervex.graph.python_form import compile_python
from nervex.graph.trace import TraceError, trace
from nervex.utils.errors import unknown_name

logger = logging.getLogger(__name__)

BACKENDS = ('off', 'py', 'numpy')
_MAX_PLANS = 16
_TOLERANCE = 1e-4  # of the largest number of an output
_ROUNDING, _MOST_ROUNDING = 1e-6, 1e-3  # of the numbers that a call works with: what is left where they cancel out


class GraphedForward:
    """
    Overview:
        ``module(data)`` without gradients, for few rows at a time: the first call with a kind of data records the
        forward pass, later calls run it as NumPy calls over the same weights (3-4 times as fast for one row of a
        small network), or, where an operator has no NumPy form, as bare torch calls. Weights that change in place are
        seen at once. What cannot be recorded runs as the module itself. Each step down is one line in the log.
    Notes:
        Python numbers in ``forward`` are frozen when it is recorded; draw and mix exploration outside. Results of the
        first calls and of every call that is a power of four are compared with the module.
    Examples:
        >>> act = GraphedForward(model)
        >>> logit = act({'obs': obs})['logit']  # arrays in, arrays out; tensors in, tensors out
    """

    def __init__(self, module: nn.Module, backend: str = 'numpy', forward: Callable[[Any], Any] | None = None) -> None:
        """
        Arguments:
            - module (:obj:`nn.Module`): what is called; its parts decide when a recording is out of date
            - backend (:obj:`str`): 'numpy', 'py' (bare torch calls) or 'off'
            - forward (:obj:`Callable | None`): another function of the data to record, e.g. a method of the module
        """
        if backend not in BACKENDS:
            raise ValueError(unknown_name('acting back end', backend, BACKENDS))
        self.module, self.backend = module, backend
        self._forward = forward or module
        self._plans: dict[Any, _Plan] = {}
        self._last: _Plan | None = None
        self.reasons: list[str] = []  # why a faster back end was left

    @torch.no_grad()
    def eager(self, data: Any) -> Any:
        """The module itself, with the same kinds of data in and out."""
        arrays = _holds_arrays(data)
        result = self._forward(pytree.tree_map(_to_tensor, data) if arrays else data)
        return pytree.tree_map(_to_array, result) if arrays else result

    def __call__(self, data: Any) -> Any:
        """
        Arguments:
            - data (:obj:`Any`): a dict of arrays or tensors (nested containers and None are fine), or one of them
        Returns:
            - result (:obj:`Any`): what the module returns, as arrays if the data was arrays
        """
        if self.backend == 'off':
            return self.eager(data)
        plan = self._last
        inputs = plan.inputs_from(data) if plan is not None else None
        if inputs is None or not plan.guard.holds():
            plan, inputs = self._find_plan(data)
            if plan is None:
                return self.eager(data)
        plan.calls += 1
        if plan.calls == plan.next_check:
            return self._checked(plan, data, inputs)
        return plan.rebuild(plan.run(*inputs))

    def _find_plan(self, data: Any) -> tuple['_Plan | None', list]:
        leaves, spec = pytree.tree_flatten(data)
        kinds = tuple(
            None if x is None else (type(x), x.shape, x.dtype, getattr(x, 'device', None))
            for x in leaves
            if x is None or isinstance(x, (np.ndarray, torch.Tensor))
        )
        if len(kinds) < len(leaves):
            self._step_down('off', 'the data holds more than arrays and tensors')
            return None, []
        key = (str(spec), kinds)
        plan = self._plans.get(key)
        if plan is None or not plan.guard.holds():
            if plan is None and len(self._plans) >= _MAX_PLANS:
                return None, []  # one more shape among many: the module itself will do
            try:
                plan = self._plans[key] = self._build(data, leaves, spec)
            except TraceError as e:
                self._step_down('off', f'it cannot be recorded: {e}')
                return None, []
        self._last = plan
        return plan, plan.prepare([x for x in leaves if x is not None])

    def _build(self, data: Any, leaves: list, spec: Any) -> '_Plan':
        inputs = [_to_tensor(x).detach().clone() for x in leaves if x is not None]
        random, found = RandomState(torch.device('cpu')), {}

        def step(*tensors: torch.Tensor) -> list[torch.Tensor]:
            given = iter(tensors)
            result = self._forward(pytree.tree_unflatten([x if x is None else next(given) for x in leaves], spec))
            outputs, found['spec'] = pytree.tree_flatten(result)
            if not all(isinstance(o, torch.Tensor) for o in outputs):
                raise TraceError('one of its results is no tensor and would be frozen')
            return outputs

        with ModuleWatch([self.module]) as watch, GeneratorWatch() as generators, torch.no_grad():
            try:
                program = trace(step, inputs)
                run, numpy = self._compile(program, inputs)
            finally:
                reason = watch.restore()
                random.restore()
                generators.restore()
        if reason or any(call.is_random for call in program.calls):
            raise TraceError(reason or 'it draws random numbers')
        plain = type(data) is dict and len(data) == len(inputs) == len(leaves)
        names = list(data) if plain else None
        return _Plan(run, numpy, Guard(program, watch), names, [x for x in leaves if x is not None], found['spec'])

    def _compile(self, program: Any, inputs: list) -> tuple[Callable, bool]:
        if self.backend == 'numpy':
            try:
                return compile_numpy(program, inputs), True
            except TraceError as e:
                self._step_down('py', str(e))
        return compile_python(program, inputs), False

    def _checked(self, plan: '_Plan', data: Any, inputs: list) -> Any:
        plan.next_check = 2 if plan.calls == 1 else max(64, plan.calls * 4)
        buffers = plan.guard.buffers
        before = [b.clone() for b in buffers]
        expected = self.eager(data)
        for buffer, value in zip(buffers, before):
            buffer.copy_(value)
        found = plan.rebuild(plan.run(*inputs))
        leaves = pytree.tree_leaves(expected)
        rounding = min(_ROUNDING * max(1.0, *(_largest(x) for x in (*inputs, *leaves))), _MOST_ROUNDING)
        if all(_close(a, b, rounding) for a, b in zip(leaves, pytree.tree_leaves(found))):
            return found
        self._step_down(
            'off', f'call {plan.calls} gives another result than the module; does it use a Python number that changes?'
        )
        return expected

    def _step_down(self, backend: str, reason: str) -> None:
        self.backend = backend
        self._last = None
        self.reasons.append(reason)
        way = {'py': 'bare torch calls', 'off': 'the module itself'}[backend]
        logger.warning('acting of %s runs as %s: %s', type(self.module).__name__, way, reason)


class _Plan:
    """A compiled forward pass with what it was made for."""

    def __init__(
        self, run: Callable, numpy: bool, guard: Guard, names: list[str] | None, examples: list, spec: Any
    ) -> None:
        self.run, self.guard = run, guard
        self.calls, self.next_check = 0, 1
        self._names = names
        self._arrays = _holds_arrays(examples)
        self._kinds = [(type(x), x.shape, x.dtype) for x in examples]
        self._convert_in = None if numpy == self._arrays else torch.from_numpy if self._arrays else torch.Tensor.numpy
        self._convert_out = None if numpy == self._arrays else _to_array if self._arrays else torch.from_numpy
        self._spec = spec
        plain = spec.num_children == spec.num_leaves and spec.type is dict
        self._keys = list(spec.context) if plain else None

    def inputs_from(self, data: Any) -> list | None:
        """The inputs of the program, if the data is of its kind: the short way for a plain dict."""
        if self._names is None or list(data) != self._names:
            return None
        leaves = list(data.values())
        for x, (kind, shape, dtype) in zip(leaves, self._kinds):
            if type(x) is not kind or x.shape != shape or x.dtype != dtype:
                return None
        return self.prepare(leaves)

    def prepare(self, leaves: list) -> list:
        """Arrays or tensors in the form that the program takes."""
        return leaves if self._convert_in is None else [self._convert_in(x) for x in leaves]

    def rebuild(self, outputs: tuple) -> Any:
        """Results in the containers of the module."""
        if self._convert_out is not None:
            outputs = [self._convert_out(x) for x in outputs]
        if self._keys is not None:
            return dict(zip(self._keys, outputs))
        return pytree.tree_unflatten(outputs, self._spec)


def _holds_arrays(data: Any) -> bool:
    return any(isinstance(x, np.ndarray) for x in pytree.tree_leaves(data))


def _to_tensor(x: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(x)) if isinstance(x, np.ndarray) else x


def _to_array(x: Any) -> Any:
    return x.cpu().numpy() if isinstance(x, torch.Tensor) else x


def _largest(x: Any) -> float:
    """The largest finite number of a float array or tensor, without its sign."""
    x = x.numpy() if isinstance(x, torch.Tensor) else x
    return float(np.abs(x).max(initial=0.0, where=np.isfinite(x))) if x.dtype.kind == 'f' else 0.0


def _close(a: Any, b: Any, rounding: float) -> bool:
    a, b = (x.numpy() if isinstance(x, torch.Tensor) else x for x in (a, b))
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != 'f':
        return np.array_equal(a, b)
    return np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE * _largest(a) + rounding, equal_nan=True)
