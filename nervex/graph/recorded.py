"""What recorded updates and recorded acting share: a program for each kind of data, guarded and checked."""

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from nervex.graph.forms import Run, Source
from nervex.graph.guard import Guard, Untouched, random_state
from nervex.graph.program import Program, TraceError, trace
from nervex.utils import tree
from nervex.utils.errors import unknown_name

logger = logging.getLogger(__name__)

_MAX_PLANS = 16  # programs that one function may have; what meets more shapes or modes goes on in eager mode
_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 1e-2}
_WAYS = {'ts': 'by TorchScript', 'py': 'as bare torch calls', 'off': 'in eager mode'}


class Plan:
    """
    Overview:
        A program that was made to run, with what it was made for. ``inputs_from(data)`` is the short way for a dict
        without nesting: the program's inputs, or None if the data is of another kind or the guard does not hold.
    """

    def __init__(self, run: Run, guard: Guard, generators: list[torch.Generator], data: Any) -> None:
        self.run, self.guard, self.generators = run, guard, generators
        self.calls, self.next_check = 0, 1
        self.inputs_from: Callable[[Any], tuple | None] = lambda data: None
        if type(data) is dict and all(type(k) is str and tree.children(x) is None for k, x in data.items()):
            self.inputs_from = self._short_way(data)

    def _short_way(self, data: dict) -> Any:
        source, names = Source(['data']), [f'x{i}' for i in range(len(data))]
        facts = [f'type(data) is dict and len(data) == {len(data)}']
        for name, (key, x) in zip(names, data.items()):
            kind, *details = _kind(x)
            facts.append(f'type({name} := data[{key!r}]) is {source.constant(kind)}')
            for attribute, value in zip(('shape', 'dtype', 'stride()', 'device'), details):
                facts.append(f'{name}.{attribute} == {source.constant(value)}')
        facts.append(self.guard.fact(source))
        source.require(' and '.join(facts), None)
        inputs = ''.join(f'{name}, ' for name, x in zip(names, data.values()) if x is not None)
        return source.finish(f'({inputs})', '<guard>')


class Recorded:
    """
    Overview:
        Keeps the plans of one function, falls back to simpler back ends and to the function itself, each with one line
        in the log, and compares plan and function at calls 1, 2, 64, 256, 1024, ...
    Arguments:
        - title (:obj:`str`): what the log calls it
        - backend (:obj:`str`): one of ``backends``, which begin with 'off', the simplest
    Interfaces:
        backend, reasons, eager_reason
    """

    backends: tuple[str, ...] = ('off',)

    def __init__(self, title: str, backend: str) -> None:
        if backend not in self.backends:
            raise ValueError(unknown_name('graph back end', backend, self.backends))
        self.title, self.backend = title, backend
        self.reasons: list[str] = []  # why a faster back end was left
        self._plans: dict[Hashable, Plan] = {}
        self._last: Plan | None = None
        self._recordings = 0

    @property
    def eager_reason(self) -> str | None:
        """Why the function itself runs; None while a program does."""
        return None if self.backend != 'off' else self.reasons[-1] if self.reasons else 'graph is off'

    def _find(self, data: Any) -> tuple[Plan | None, list]:
        """The plan for the data, recorded now if need be, and its inputs; (None, []) where the function itself runs."""
        leaves = [(path, x) for path, x in tree.zip(data)]
        strange = [x for _, x in leaves if not isinstance(x, (torch.Tensor, np.ndarray, type(None)))]
        if strange:
            text = f'a {type(strange[0]).__name__} ({strange[0]!r:.40}); give numbers as 0-dim tensors'
            self._fall_back('off', f'the data holds more than arrays and tensors: {text}')
            return None, []
        key = tuple((path, _kind(x)) for path, x in leaves)
        plan = self._plans.get(key)
        if plan is None or not plan.guard.holds():
            self._recordings += 1
            if self._recordings > _MAX_PLANS:
                if self._recordings == _MAX_PLANS + 1:
                    logger.warning('%s: shapes or modes change too often, more of them run in eager mode', self.title)
                return None, []
            try:
                plan = self._plans[key] = self._record(data)
            except TraceError as e:
                self._fall_back('off', f'it cannot be recorded: {e}')
                return None, []
        self._last = plan
        return plan, [x for _, x in leaves if x is not None]

    def _record(self, data: Any) -> Plan:
        raise NotImplementedError

    def _trace(
        self, step: Callable, data: Any, modules: Iterable[nn.Module], compiled: Callable[[Program, str], Run]
    ) -> tuple[Run, Guard, list[torch.Generator]]:
        """``step(data) -> tensors``, made to run by the present back end or a simpler one, and what it depends on."""
        inputs = [_copied(x) for x in tree.leaves(data) if x is not None]

        def function(*tensors: torch.Tensor) -> list[torch.Tensor]:
            given = iter(tensors)
            return step(tree.map(lambda x: None if x is None else next(given), data))

        with Untouched(modules, self._device) as watch:
            program, run = trace(function, inputs, watch.saw), None
            while run is None:
                try:
                    with torch.no_grad():
                        run = compiled(program, self.backend)
                except TraceError as e:
                    if self.backend == 'py':
                        raise
                    simpler = self.backends[self.backends.index(self.backend) - 1]
                    self._fall_back(simpler, f"'{self.backend}' is left out: {e}")
        return run, Guard(program, watch.modules.values()), program.generators

    @property
    def _device(self) -> torch.device:
        return torch.device('cpu')

    def _agrees(
        self, plan: Plan, eager: Callable[[], dict], recorded: Callable[[], dict], rounding: float = 0.0
    ) -> bool:
        """
        Overview:
            Run both ways from the same random state and buffers, and compare their results, tensors by name. Where they
            differ, all is left as the eager way leaves it, and no program runs any more.
        """
        plan.next_check = 2 if plan.calls == 1 else max(64, plan.calls * 4)
        buffers = plan.guard.buffers
        before, go_back = [b.clone() for b in buffers], random_state(self._device, plan.generators)
        expected = eager()
        after, go_on = [b.clone() for b in buffers], random_state(self._device, plan.generators)
        expected |= {f'buffer {i}': value for i, value in enumerate(after)}
        go_back()
        for buffer, value in zip(buffers, before):
            buffer.copy_(value)
        found = recorded() | {f'buffer {i}': buffer for i, buffer in enumerate(buffers)}
        wrong = [name for name, value in expected.items() if not _close(value, found[name], rounding)]
        if not wrong:
            return True
        go_on()
        for buffer, value in zip(buffers, after):
            buffer.copy_(value)
        self._fall_back(
            'off',
            f'call {plan.calls} gives another {wrong[0]} than eager mode; does it use a Python number that changes, or '
            'random numbers from outside torch?',
        )
        return False

    def _fall_back(self, backend: str, reason: str) -> None:
        self.backend = backend
        self.reasons.append(reason)
        self._last = None
        if backend == 'off':
            self._plans.clear()
        logger.warning('%s runs %s: %s', self.title, _WAYS[backend], reason)


def _kind(x: Any) -> tuple:
    """What a program depends on; strides, too, because sums are taken in the order of the memory."""
    if isinstance(x, torch.Tensor):
        return type(x), x.shape, x.dtype, x.stride(), x.device
    return (type(x), x.shape, x.dtype) if isinstance(x, np.ndarray) else (type(x),)


def _copied(x: Any) -> torch.Tensor:
    """A tensor with the same numbers in the same layout; NumPy's arrays are put in order."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(np.array(x, order='C'))
    if x.layout is not torch.strided or not x.numel():
        return x.detach().clone()
    length = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride()))
    return x.detach().as_strided((length,), (1,)).clone().as_strided(x.shape, x.stride())


def largest(x: torch.Tensor) -> float:
    """The largest finite number of a tensor, without its sign."""
    return x.nan_to_num(0.0, 0.0, 0.0).abs().max().item() if x.numel() and x.is_floating_point() else 0.0


def _close(a: torch.Tensor, b: torch.Tensor, rounding: float) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    tolerance = _TOLERANCE.get(a.dtype, 1e-4)
    return torch.allclose(a, b, tolerance, tolerance * max(largest(a), 1e-6) + rounding, equal_nan=True)
