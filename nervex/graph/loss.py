"""The update as a graph: loss and gradient of any module recorded once, then run as bare operator calls."""

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from nervex.graph.guard import GeneratorWatch, Guard, ModuleWatch, RandomState
from nervex.graph.python_form import compile_python
from nervex.graph.trace import TraceError, trace
from nervex.torch_utils.flat import FlatParameters
from nervex.utils.errors import unknown_name

logger = logging.getLogger(__name__)

BACKENDS = ('off', 'py', 'ts', 'inductor')
_MAX_PLANS = 16  # shapes that are traced; a loss that meets more goes on in eager mode
_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 1e-2}
LossFn = Callable[[dict], Any]


class GraphedLoss:
    """
    Overview:
        Calls ``loss_fn(batch)`` and leaves the gradient of the loss in ``flat.grad``, ready for
        ``optimizer.apply()``. The first call with a kind of batch (names, shapes, dtypes, modes of the modules)
        records loss and backward pass as a program; later calls run that, without autograd and without the modules'
        Python code: 2-3 times as fast for small networks. The program is compared with eager mode at calls 1, 2, 64,
        256, 1024, ... What cannot be recorded, or differs, goes on in eager mode and says so in one line of the log.
    Notes:
        Python numbers inside ``loss_fn`` are frozen when it is recorded. What changes over time (a schedule, a
        coefficient) enters as a 0-dim tensor in the batch, or through ``key``. ``loss_fn`` must not change anything
        but buffers of modules.
    Examples:
        >>> update = GraphedLoss(loss_fn, FlatParameters(model), 'py')
        >>> optimizer = Adam(update.flat, lr=1e-3)
        >>> loss, aux = update(batch)
        >>> optimizer.apply()
    """

    def __init__(
        self,
        loss_fn: LossFn,
        flat: FlatParameters,
        backend: str = 'py',
        modules: Iterable[nn.Module] = (),
        key: Callable[[], Hashable] | None = None,
    ) -> None:
        """
        Arguments:
            - loss_fn (:obj:`LossFn`): takes a dict of tensors (nested dicts and None are fine), returns the 0-dim \
                loss or (loss, dict of tensors)
            - flat (:obj:`FlatParameters`): what to differentiate for
            - backend (:obj:`str`): 'off' (eager), 'py' (Python source), 'ts' (TorchScript interpreter) or 'inductor' \
                (compiled, needs a C++ compiler and seconds)
            - modules (:obj:`Iterable[nn.Module]`): modules whose parts ``loss_fn`` uses without calling them
            - key (:obj:`Callable | None`): gives a value; a program is used again only while it is equal
        """
        if backend not in BACKENDS:
            raise ValueError(unknown_name('graph backend', backend, BACKENDS))
        self.loss_fn, self.flat, self.backend = loss_fn, flat, backend
        self._modules, self._key = list(modules), key
        self._plans: dict[Any, _Plan] = {}
        self._last: _Plan | None = None
        self._builds = 0
        self.eager_reason: str | None = 'graph is off' if backend == 'off' else None

    def __call__(self, batch: dict) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """
        Returns:
            - loss (:obj:`torch.Tensor`): 0-dim, detached
            - aux (:obj:`dict[str, torch.Tensor]`): the second result of ``loss_fn``, detached
        """
        if self.eager_reason is not None:
            return self._eager(batch)
        plan = self._last
        extra = self._key() if self._key is not None else None
        inputs = plan.inputs_from(batch, extra) if plan is not None else None
        if inputs is None:
            plan, inputs = self._find_plan(batch, extra)
            if plan is None:
                return self._eager(batch)
        if not (plan.guard.holds() and self.flat.intact()):
            self.flat.check()
            self._plans = {k: p for k, p in self._plans.items() if p is not plan}
            self._last = None
            return self(batch)
        plan.calls += 1
        if plan.calls == plan.next_check:
            return self._checked(plan, batch, inputs)
        return self._finish(plan, plan.run(*inputs))

    def _finish(self, plan: '_Plan', outputs: tuple) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        self.flat.grad, self.flat.unused = outputs[0], plan.unused
        return outputs[1], dict(zip(plan.aux_names, outputs[2:]))

    def _eager(self, batch: dict) -> tuple[torch.Tensor, dict[str, Any]]:
        loss, aux = _split(self.loss_fn(batch))
        self.flat.gradient(loss)
        detached = {k: v.detach() if isinstance(v, torch.Tensor) else v for k, v in aux.items()}
        return loss.detach(), detached

    def _find_plan(self, batch: dict, extra: Hashable) -> tuple['_Plan | None', tuple]:
        leaves, spec = pytree.tree_flatten(batch)
        strange = [x for x in leaves if x is not None and not isinstance(x, torch.Tensor)]
        if strange:
            kind = type(strange[0]).__name__
            self._give_up(f'the batch holds a {kind} ({strange[0]!r:.40}); give numbers as 0-dim tensors')
            return None, ()
        kinds = tuple(None if x is None else (x.shape, x.dtype, x.device) for x in leaves)
        key = (str(spec), kinds, extra, _autocast())
        plan = self._plans.get(key)
        if plan is None or not plan.guard.holds():
            if self._builds >= _MAX_PLANS:
                self._give_up(f'{_MAX_PLANS} programs were recorded already; the shapes or modes change too often')
                return None, ()
            self._builds += 1
            try:
                plan = self._plans[key] = self._build(batch, leaves, spec, extra)
            except TraceError as e:
                self._give_up(f'it cannot be recorded: {e}')
                return None, ()
        self._last = plan
        return plan, tuple(x.contiguous() for x in leaves if x is not None)

    def _build(self, batch: dict, leaves: list, spec: Any, extra: Hashable) -> '_Plan':
        inputs = [x.detach().clone() for x in leaves if x is not None]
        random = RandomState(self.flat.data.device)
        found: dict[str, Any] = {}

        def step(*tensors: torch.Tensor) -> list[torch.Tensor]:
            given = iter(tensors)
            columns = [x if x is None else next(given) for x in leaves]
            loss, aux = _split(self.loss_fn(pytree.tree_unflatten(columns, spec)))
            plain = [k for k, v in aux.items() if not isinstance(v, torch.Tensor)]
            if plain:
                raise TraceError(f"its result '{plain[0]}' is no tensor and would be frozen")
            grads = torch.autograd.grad(loss, self.flat.params, allow_unused=True)
            found['unused'] = tuple(i for i, g in enumerate(grads) if g is None)
            found['aux'] = list(aux)
            pieces = [torch.zeros_like(p) if g is None else g for g, p in zip(grads, self.flat.params)]
            return [torch.cat([g.reshape(-1) for g in pieces]), loss.detach(), *[v.detach() for v in aux.values()]]

        modules = [m for m in (ref() for ref in self.flat._modules) if m is not None]
        with ModuleWatch([*modules, *self._modules]) as watch, GeneratorWatch() as generators:
            try:
                program = trace(step, inputs)
                run = self._compile(program, inputs)
            finally:
                reason = watch.restore()
                random.restore()
                generators.restore()
        if reason:
            raise TraceError(reason)
        guard = Guard(program, watch)
        return _Plan(run, guard, program.generators, batch, extra, found['unused'], found['aux'])

    def _compile(self, program: Any, inputs: list[torch.Tensor]) -> Callable[..., tuple]:
        """By the back end asked for, or the simpler ones after it."""
        for backend in BACKENDS[BACKENDS.index(self.backend) : 0 : -1]:
            try:
                return _COMPILERS[backend](program, inputs)
            except TraceError as e:
                if backend == 'py':
                    raise
                logger.warning("graph back end '%s' is left out: %s", backend, e)
        raise TraceError('no back end is left')

    def _checked(self, plan: '_Plan', batch: dict, inputs: tuple) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Run both ways from the same random state and buffers, and compare."""
        plan.next_check = 2 if plan.calls == 1 else max(64, plan.calls * 4)
        device, buffers = self.flat.data.device, plan.guard.buffers
        random, before = RandomState(device, plan.generators), [b.clone() for b in buffers]
        loss, aux = self._eager(batch)
        expected = [self.flat.grad, loss, *aux.values(), *[b.clone() for b in buffers]]
        unused, random_after = self.flat.unused, RandomState(device, plan.generators)
        random.restore()
        for buffer, value in zip(buffers, before):
            buffer.copy_(value)
        outputs = plan.run(*inputs)
        found = [*outputs, *buffers]
        labels = ['gradient', 'loss', *plan.aux_names, *['buffer'] * len(buffers)]
        wrong = [k for k, a, b in zip(labels, expected, found) if not _close(a, b)]
        if not wrong and unused == plan.unused:
            return self._finish(plan, outputs)
        for buffer, value in zip(buffers, expected[2 + len(aux) :]):
            buffer.copy_(value)
        random_after.restore()
        self.flat.grad, self.flat.unused = expected[0], unused
        what = wrong[0] if wrong else 'set of used parameters'
        self._give_up(
            f'call {plan.calls} gives another {what} than eager mode; does it use a Python number that '
            'changes, or random numbers from outside torch?'
        )
        return loss, aux

    def _give_up(self, reason: str) -> None:
        self.eager_reason = reason
        self._plans.clear()
        self._last = None
        name = getattr(self.loss_fn, '__qualname__', type(self.loss_fn).__name__)
        logger.warning('the update %s runs in eager mode: %s', name, reason)


class _Plan:
    """A compiled program with what it was made for."""

    def __init__(
        self,
        run: Callable,
        guard: Guard,
        generators: list,
        batch: dict,
        extra: Hashable,
        unused: tuple[int, ...],
        aux_names: list[str],
    ) -> None:
        self.run, self.guard, self.generators = run, guard, generators
        self.unused, self.aux_names = unused, aux_names
        self.calls, self.next_check = 0, 1
        plain = all(x is None or isinstance(x, torch.Tensor) for x in batch.values())
        self._names = list(batch) if plain else None
        self._kinds = [None if x is None else (x.shape, x.dtype, x.device) for x in batch.values()] if plain else []
        self._extra, self._autocast = extra, _autocast()

    def inputs_from(self, batch: dict, extra: Hashable) -> list[torch.Tensor] | None:
        """The program's inputs, if the batch is of its kind: the short way for batches without nesting."""
        if self._names is None or list(batch) != self._names or extra != self._extra or _autocast() != self._autocast:
            return None
        inputs = []
        for x, kind in zip(batch.values(), self._kinds):
            if x is None or kind is None:
                if x is not kind:
                    return None
                continue
            shape, dtype, device = kind
            if not isinstance(x, torch.Tensor) or x.shape != shape or x.dtype is not dtype or x.device != device:
                return None
            inputs.append(x if x.is_contiguous() else x.contiguous())
        return inputs


def _script(program: Any, inputs: list[torch.Tensor]) -> Callable[..., tuple]:
    from nervex.graph.script_form import compile_script

    return compile_script(program, inputs)


def _inductor(program: Any, inputs: list[torch.Tensor]) -> Callable[..., tuple]:
    from nervex.graph.inductor_form import compile_inductor

    return compile_inductor(program, inputs)


_COMPILERS = {'py': compile_python, 'ts': _script, 'inductor': _inductor}


def _split(result: Any) -> tuple[torch.Tensor, dict[str, Any]]:
    if isinstance(result, torch.Tensor):
        return result, {}
    loss, aux = result
    return loss, aux or {}


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    scale = torch.nan_to_num(a, 0.0, 0.0, 0.0).abs().max().item() if a.numel() else 0.0
    tolerance = _TOLERANCE.get(a.dtype, 1e-4)
    return torch.allclose(a, b, rtol=tolerance, atol=tolerance * max(scale, 1e-6), equal_nan=True)


_autocast = getattr(torch._C, '_is_any_autocast_enabled', torch.is_autocast_enabled)
