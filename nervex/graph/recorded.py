"""What recorded updates and acting share: a program for each kind of data, and when the function itself runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nervex.graph.program import NoFormError, TraceError
from nervex.utils import tree
from nervex.utils.errors import unknown_name

if TYPE_CHECKING:
    from nervex.graph.recording import Plan

logger = logging.getLogger(__name__)

_MAX_PLANS = 16  # programs that one function may have; what meets more shapes or modes goes on in eager mode


class Recorded:
    """
    Overview:
        A function of nested tensors that is recorded at its first call with a kind of data. What cannot be recorded
        runs as it is (``eager``), with one line in the log that says why where somebody could mend it. Both are
        compared at calls 1, 2, 64, 256, 1024, ...
    Arguments:
        - title (:obj:`str`): what the log calls it
        - backend (:obj:`str`): one of ``backends``; 'off' is the function itself
    Interfaces:
        __call__, eager, backend, eager_reason
    """

    backends: tuple[str, ...] = ('off',)

    def __init__(self, title: str, backend: str) -> None:
        if backend not in self.backends:
            raise ValueError(unknown_name('graph back end', backend, self.backends))
        self.title, self.backend = title, backend
        #: why the function itself runs; None while a program does
        self.eager_reason = 'graph is off' if backend == 'off' else None
        self._plans: list[Plan] = []
        self._last: Plan | None = None
        self._is_full = False
        self._device = torch.device('cpu')

    def __call__(self, data: Any) -> Any:
        """The function's result."""
        plan = self._last
        inputs: Sequence | None = plan.inputs_from(data) if plan is not None else None
        if plan is None or inputs is None:
            plan, inputs = self._find(data)
            if plan is None or inputs is None:
                return self.eager(data)
        plan.calls += 1
        return self._checked(plan, data, inputs) if plan.calls == plan.next_check else plan.run(*inputs)

    def eager(self, data: Any) -> Any:
        """The function itself."""
        raise NotImplementedError

    def _record(self, data: Any) -> Plan:
        """A plan whose ``run`` answers what the function does."""
        raise NotImplementedError

    def _checked(self, plan: Any, data: Any, inputs: Sequence) -> Any:
        """The result by both ways, see ``_agrees``."""
        raise NotImplementedError

    def _find(self, data: Any) -> tuple[Plan | None, Sequence | None]:
        """The plan for the data, recorded now if need be, and its inputs; None where the function itself runs."""
        if self.backend == 'off':
            return None, None
        for plan in self._plans:
            inputs = plan.inputs_from(data)
            if inputs is not None:
                self._last = plan
                return plan, inputs
        strange = [x for x in tree.leaves(data) if not isinstance(x, (torch.Tensor, np.ndarray, type(None)))]
        if strange:
            text = f'a {type(strange[0]).__name__} ({strange[0]!r:.40}); give numbers as 0-dim tensors'
            self._give_up(f'the data holds more than arrays and tensors: {text}')
            return None, None
        if len(self._plans) == _MAX_PLANS:
            if not self._is_full:
                logger.warning('%s: shapes or modes change too often, more of them run in eager mode', self.title)
            self._is_full = True
            return None, None
        try:
            plan = self._record(data)
        except TraceError as e:
            level = logging.DEBUG if isinstance(e, NoFormError) else logging.WARNING
            self._give_up(f'it cannot be recorded: {e}', level)
            return None, None
        self._plans.append(plan)
        self._last = plan
        return plan, plan.inputs_from(data)

    def _agrees(self, plan: Plan, eager: Callable, recorded: Callable, rounding: float = 0.0) -> bool:
        """Run both ways, see ``compare``; where they differ, no program runs any more."""
        from nervex.graph.recording import compare

        wrong = compare(plan, eager, recorded, self._device, rounding)
        if wrong is not None:
            self._give_up(
                f'call {plan.calls} gives another {wrong} than eager mode; does it use a Python number that '
                'changes, or random numbers from outside torch?'
            )
        return wrong is None

    def _give_up(self, reason: str, level: int = logging.WARNING) -> None:
        self.backend, self.eager_reason, self._last = 'off', reason, None
        self._plans.clear()
        logger.log(level, '%s runs in eager mode: %s', self.title, reason)
