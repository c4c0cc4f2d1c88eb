"""The update as a graph: loss and gradient of any module recorded once, then run as bare operator calls."""

from collections.abc import Callable
from typing import Any

import torch

from nervex.graph.forms import Run, compile_inductor, compile_python, compile_script, write_gradient_in_place
from nervex.graph.program import Program, TraceError
from nervex.graph.recorded import Plan, Recorded
from nervex.torch_utils.flat import FlatParameters

BACKENDS = ('off', 'py', 'ts', 'inductor')
COMPILERS: dict[str, Callable[[Program], Run]] = {
    'py': lambda program: compile_python(write_gradient_in_place(program)),
    'ts': compile_script,
    'inductor': compile_inductor,
}
LossFn = Callable[[dict], Any]


class GraphedLoss(Recorded):
    """
    Overview:
        Calls ``loss_fn(batch)`` and leaves the gradient of the loss in ``flat.grad``, ready for
        ``optimizer.apply()``. The first call with a kind of batch (names, shapes, dtypes, layouts, modes of the
        modules) records loss and backward pass as a program; later calls run that, without autograd and without the
        modules' Python code: 2-3 times as fast for small networks. The program is compared with eager mode at calls 1,
        2, 64, 256, 1024, ... What cannot be recorded, or differs, goes on in eager mode and says so in one line of the
        log.
    Notes:
        Python numbers inside ``loss_fn`` are frozen when it is recorded. What changes over time (a schedule, a
        coefficient) enters as a 0-dim tensor in the batch. ``loss_fn`` must not change anything but buffers of
        modules. Under autocast it always runs in eager mode.
    Examples:
        >>> update = GraphedLoss(loss_fn, FlatParameters(model), 'py')
        >>> optimizer = Adam(update.flat, lr=1e-3)
        >>> loss, aux = update(batch)
        >>> optimizer.apply()
    """

    backends = BACKENDS

    def __init__(self, loss_fn: LossFn, flat: FlatParameters, backend: str = 'py') -> None:
        """
        Arguments:
            - loss_fn (:obj:`LossFn`): takes a dict of tensors (nested dicts and None are fine), returns the 0-dim \
                loss or (loss, dict of tensors)
            - flat (:obj:`FlatParameters`): what to differentiate for
            - backend (:obj:`str`): 'off' (eager), 'py' (Python source), 'ts' (TorchScript interpreter) or 'inductor' \
                (compiled, needs a C++ compiler and seconds)
        """
        super().__init__(f'the update {getattr(loss_fn, "__qualname__", type(loss_fn).__name__)}', backend)
        self.loss_fn, self.flat = loss_fn, flat

    def __call__(self, batch: dict) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """
        Returns:
            - loss (:obj:`torch.Tensor`): 0-dim, detached
            - aux (:obj:`dict[str, torch.Tensor]`): the second result of ``loss_fn``, detached
        """
        if self.backend == 'off' or _autocast():
            return self._eager(batch)
        plan: Any = self._last
        inputs = plan.inputs_from(batch) if plan is not None else None
        if inputs is None:
            plan, inputs = self._find(batch)
            if plan is None:
                return self._eager(batch)
        if not self.flat.intact():
            self.flat.check()
        plan.calls += 1
        return self._checked(plan, batch, inputs) if plan.calls == plan.next_check else self._run(plan, inputs)

    def _run(self, plan: '_LossPlan', inputs: list) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        self.flat.grad, loss, *aux = plan.run(*inputs)
        self.flat.unused = plan.unused
        return loss, dict(zip(plan.aux_names, aux))

    def _eager(self, batch: dict) -> tuple[torch.Tensor, dict[str, Any]]:
        loss, aux = _split(self.loss_fn(batch))
        self.flat.gradient(loss)
        return loss.detach(), {k: v.detach() if isinstance(v, torch.Tensor) else v for k, v in aux.items()}

    def _record(self, data: dict) -> '_LossPlan':
        self.flat.check()
        unused: list[int] = []
        names: list[str] = []

        def step(batch: dict) -> list[torch.Tensor]:
            loss, aux = _split(self.loss_fn(batch))
            plain = [k for k, v in aux.items() if not isinstance(v, torch.Tensor)]
            if plain:
                raise TraceError(f"its result '{plain[0]}' is no tensor and would be frozen")
            grads = torch.autograd.grad(loss, self.flat.params, allow_unused=True)
            unused[:] = [i for i, g in enumerate(grads) if g is None]
            names[:] = aux
            pieces = [torch.zeros_like(p) if g is None else g for g, p in zip(grads, self.flat.params)]
            return [torch.cat([g.reshape(-1) for g in pieces]), loss.detach(), *[v.detach() for v in aux.values()]]

        plan = _LossPlan(*self._trace(step, data, self.flat.modules, lambda p, backend: COMPILERS[backend](p)), data)
        plan.unused, plan.aux_names = tuple(unused), names
        return plan

    @property
    def _device(self) -> torch.device:
        return self.flat.data.device

    def _checked(self, plan: '_LossPlan', batch: dict, inputs: list) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        ways: list[tuple] = []

        def tensors(loss: torch.Tensor, aux: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            ways.append((self.flat.grad, self.flat.unused, loss, aux))
            unused = torch.tensor(self.flat.unused)
            return {'gradient': self.flat.grad, 'set of used parameters': unused, 'loss': loss, **aux}

        same = self._agrees(plan, lambda: tensors(*self._eager(batch)), lambda: tensors(*self._run(plan, inputs)))
        self.flat.grad, self.flat.unused, loss, aux = ways[1 if same else 0]
        return loss, aux


class _LossPlan(Plan):
    """Knows the parameters that the loss does not reach, and the names of its other results, too."""

    unused: tuple[int, ...]
    aux_names: list[str]


def _split(result: Any) -> tuple[torch.Tensor, dict[str, Any]]:
    if isinstance(result, torch.Tensor):
        return result, {}
    loss, aux = result
    return loss, aux or {}


_autocast = getattr(torch._C, '_is_any_autocast_enabled', torch.is_autocast_enabled)
