"""One update of a policy: loss and gradient, eager first and as a recorded graph later, and an optimizer step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from nervex.graph.matmul import FastMatmul
from nervex.graph.recorded import Recorded
from nervex.torch_utils.flat import FlatParameters
from nervex.utils.dist_helper import allreduce_gradients

if TYPE_CHECKING:
    from nervex.graph.recording import Plan

BACKENDS = ('off', 'ts')
GRAPH_AFTER = 32  # updates; recording takes 25 ms, which a small network gains in some 100 updates
LossFn = Callable[[dict], Any]
LossAndLog = tuple[torch.Tensor, dict[str, Any]]
_optimized, _optimize = torch._C._get_graph_executor_optimize, torch._C._set_graph_executor_optimize
_autocast = getattr(torch._C, '_is_any_autocast_enabled', torch.is_autocast_enabled)


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
        >>> update = GraphedLoss(loss_fn, FlatParameters(model))
        >>> optimizer = Adam(update.flat, lr=1e-3)
        >>> loss, aux = update(batch)
        >>> optimizer.apply()
    """

    backends = BACKENDS

    def __init__(self, loss_fn: LossFn, flat: FlatParameters, backend: str = 'ts') -> None:
        """
        Arguments:
            - loss_fn (:obj:`LossFn`): takes a dict of tensors (nested dicts and None are fine), returns the 0-dim \
                loss or (loss, dict of tensors)
            - flat (:obj:`FlatParameters`): what to differentiate for
            - backend (:obj:`str`): 'ts' (TorchScript's interpreter) or 'off' (eager)
        """
        super().__init__(f'the update {getattr(loss_fn, "__qualname__", type(loss_fn).__name__)}', backend)
        self.loss_fn, self.flat, self._device = loss_fn, flat, flat.data.device

    def __call__(self, data: dict) -> LossAndLog:
        """
        Returns:
            - loss (:obj:`torch.Tensor`): 0-dim, detached
            - aux (:obj:`dict[str, torch.Tensor]`): the second result of ``loss_fn``, detached
        """
        return self.eager(data) if self.backend == 'off' or _autocast() else super().__call__(data)

    def eager(self, data: dict) -> LossAndLog:
        """By ``loss_fn`` and autograd."""
        loss, aux = self._split(data)
        self.flat.gradient(loss)
        return loss.detach(), {k: v.detach() if isinstance(v, torch.Tensor) else v for k, v in aux.items()}

    def _split(self, data: dict) -> LossAndLog:
        result = self.loss_fn(data)
        return (result, {}) if isinstance(result, torch.Tensor) else (result[0], result[1] or {})

    def _record(self, data: dict) -> Plan:
        from nervex.graph.recording import record
        from nervex.graph.script import compile_script, gradient_step

        self.flat.check()
        step, unused, names = gradient_step(self._split, self.flat.params)
        plan = record(step, data, self.flat.modules, self._device, compile_script)
        flat, program, left_out = self.flat, plan.run, tuple(unused)

        @functools.wraps(program)
        def run(*inputs: Any) -> LossAndLog:
            before = _optimized()
            _optimize(False)  # the interpreter's own optimizer finds nothing to do, and takes 25 ms for that
            try:
                flat.grad, loss, *aux = program(*inputs)
            finally:
                _optimize(before)
            flat.unused = left_out
            return loss, dict(zip(names, aux))

        plan.run = run
        return plan

    def _checked(self, plan: Any, data: dict, inputs: Sequence) -> LossAndLog:
        ways: list[tuple] = []
        self.flat.check()  # the optimizer looks at every step

        def tensors(loss: torch.Tensor, aux: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            ways.append((self.flat.grad, self.flat.unused, loss, aux))
            unused = torch.tensor(self.flat.unused)
            return {'gradient': self.flat.grad, 'set of used parameters': unused, 'loss': loss, **aux}

        same = self._agrees(plan, lambda: tensors(*self.eager(data)), lambda: tensors(*plan.run(*inputs)))
        self.flat.grad, self.flat.unused, loss, aux = ways[1 if same else 0]
        return loss, aux


class Update:
    """
    Overview:
        Calls ``loss_fn(data) -> (loss, log values)`` and steps ``optimizer`` along its gradient.
    Arguments:
        - graph (:obj:`str`): back end of ``GraphedLoss``; 'auto' is eager for ``GRAPH_AFTER`` calls, then 'ts'
        - model (:obj:`torch.nn.Module`): its layers decide whether oneDNN multiplies
        - distributed (:obj:`bool`): average the gradient over the processes of torch.distributed, each as often as it
          has rows
        - matmul (:obj:`str`): 'onednn', 'mkl' or 'auto', see ``FastMatmul``
    Interfaces:
        __call__, state_dict, load_state_dict
    """

    def __init__(
        self,
        loss_fn: LossFn,
        optimizer: Any,
        graph: str,
        model: torch.nn.Module,
        distributed: bool = False,
        matmul: str = 'auto',
    ) -> None:
        self._optimizer, self._model, self._distributed = optimizer, model, distributed
        self._graphed = GraphedLoss(loss_fn, optimizer.flat, 'ts' if graph == 'auto' else graph)
        self._graph_after = GRAPH_AFTER if graph == 'auto' else 0
        self._calls = 0
        self._matmul = matmul  # 'auto' until the first batch
        self._fast: FastMatmul | None = None

    def __call__(self, data: dict) -> LossAndLog:
        """One update; the log values gain ``grad_norm``, before clipping."""
        self._calls += 1
        if self._fast is None:
            columns = [value.numel() for value in data.values() if isinstance(value, torch.Tensor) and value.dim()]
            self._fast = FastMatmul(self._model.parameters(), min(columns, default=1), self._matmul)
            self._matmul = 'onednn' if self._fast.enabled else 'mkl'
        differentiate = self._graphed if self._calls > self._graph_after else self._graphed.eager
        if self._fast.enabled:
            with self._fast:
                loss, info = differentiate(data)
        else:
            loss, info = differentiate(data)
        if self._distributed:
            allreduce_gradients(self._optimizer.flat, weight=_rows(data))
        norm = self._optimizer.apply()
        info['grad_norm'] = self._optimizer.flat.grad.norm() if norm is None else norm
        return loss, info

    def state_dict(self) -> dict[str, Any]:
        """
        Overview:
            What was decided and when: all forms round differently, so a resumed run changes over at the same call and
            multiplies by the same library, also where the rule would choose another on its CPU.
        """
        return {'calls': self._calls, 'matmul': self._matmul}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave; a library that the setting names stays."""
        self._calls = state['calls']
        if self._matmul == 'auto':
            self._matmul = state.get('matmul', 'auto')


def _rows(data: dict) -> int:
    """Rows of a batch: all of its columns are equally long."""
    return next((len(value) for value in data.values() if isinstance(value, torch.Tensor) and value.dim()), 1)
