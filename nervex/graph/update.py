"""One update of a policy: the gradient of a loss, eager first and as a recorded graph later, and an optimizer step."""

from __future__ import annotations

from typing import Any

import torch

from nervex.graph.loss import GraphedLoss, LossFn
from nervex.graph.matmul import FastMatmul
from nervex.utils.dist_helper import allreduce_gradients

GRAPH_AFTER = 32  # updates; recording takes 25 ms, which a small network gains in some 100 updates
ACTING_GRAPH_AFTER = 300  # calls; recording takes 3 ms, which acting for a few envs gains in so many


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
        self._eager = GraphedLoss(loss_fn, optimizer.flat, 'off')
        self._graphed = GraphedLoss(loss_fn, optimizer.flat, 'ts' if graph == 'auto' else graph)
        self._graph_after = GRAPH_AFTER if graph == 'auto' else 0
        self._calls = 0
        self._matmul = matmul  # 'auto' until the first batch
        self._fast: FastMatmul | None = None

    def __call__(self, data: dict) -> tuple[torch.Tensor, dict]:
        """One update; the log values gain ``grad_norm``, before clipping."""
        self._calls += 1
        if self._fast is None:
            columns = [value.numel() for value in data.values() if isinstance(value, torch.Tensor) and value.dim()]
            self._fast = FastMatmul(self._model.parameters(), min(columns, default=1), self._matmul)
            self._matmul = 'onednn' if self._fast.enabled else 'mkl'
        differentiate = self._graphed if self._calls > self._graph_after else self._eager
        with self._fast:
            loss, info = differentiate(data)
        if self._distributed:
            allreduce_gradients(self._optimizer.flat, weight=_rows(data))
        norm = self._optimizer.apply()
        info['grad_norm'] = torch.linalg.vector_norm(self._optimizer.flat.grad) if norm is None else norm
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
