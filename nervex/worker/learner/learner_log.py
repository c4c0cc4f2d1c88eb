"""What a learner writes about its updates, and the window of the newest of them."""

from __future__ import annotations

import math
import numbers
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from nervex.utils import TrainingError, tree
from nervex.utils.autolog import LoggedModel, LoggedValue, TickTime, monitor_type
from nervex.utils.log_helper import TBLogger, TextLogger


class LearnerLog:
    """
    Overview:
        The files of ``log/learner``, and the monitor behind them: a LoggedModel in which an update is a tick. It hears
        of the updates when somebody reads it, so that tensors become numbers only then.
    Attributes:
        - last (:obj:`dict | None`): what the newest update answered
        - fresh (:obj:`deque`): the same of the updates that the monitor was not told of
    """

    def __init__(self, path: str) -> None:
        self.text, self.tb = TextLogger(path, 'learner'), TBLogger(path, 'learner')
        self.last: dict[str, Any] | None = None
        self.monitor = monitor_type([])(TickTime(), 1)  # until there is a policy

    @property
    def monitor(self) -> LoggedModel:
        """The monitor, up to date."""
        for values in self.fresh:
            self._monitor.record({name: _number(values[name]) for name in self._known if values.get(name) is not None})
            self._monitor.time.step()
        self.fresh.clear()
        return self._monitor

    @monitor.setter
    def monitor(self, monitor: LoggedModel) -> None:
        """Remember what another one has variables for."""
        if not isinstance(monitor, LoggedModel) or not isinstance(monitor.time, TickTime):
            raise TypeError(
                f'learner.monitor: got {monitor!r}, must be a LoggedModel over a TickTime: a tick an update'
            )
        self._monitor = monitor
        variables = {name: v for cls in reversed(type(monitor).__mro__) for name, v in vars(cls).items()}
        self._known = [name for name, variable in variables.items() if isinstance(variable, LoggedValue)]
        self.fresh: deque[dict[str, Any]] = deque(
            maxlen=None if math.isinf(monitor.expire) else math.ceil(monitor.expire)
        )

    def write(self, learner: Any) -> None:
        """Text: values of the last update. TensorBoard: the monitor's statistics, against updates and env steps."""
        if self.last is None:
            return
        self.check_finite(learner)
        train_iter, envstep = learner.train_iter, learner.envstep
        speed = {'updates_per_s': train_iter / max(learner.train_seconds, 1e-9)}
        monitor, last = self.monitor, self.last
        values = {name: float(_number(last[name])) for name in self._known if last.get(name) is not None}
        shown = ', '.join(f'{name} {value:.6g}' for name, value in values.items())
        self.text.info(f'iteration {train_iter}, env step {envstep}: {shown}')
        statistics = {**dict(self._statistics(monitor)), **speed}
        self.tb.add_both('learner', statistics, train_iter, envstep)
        for key, value in last.items():
            if key.startswith('['):
                self.tb.add_val(key.replace(']', ']learner_iter/', 1), value, train_iter)

    def _statistics(self, monitor: LoggedModel) -> Iterator[tuple[str, float]]:
        """Averages under the name of their variable, other statistics as ``name_statistic``."""
        chosen = getattr(monitor, 'logged', None)
        for name in self._known:
            if monitor.range_values[name]():
                for statistic in monitor.get_property_attribute(name) if chosen is None else chosen:
                    value = getattr(monitor, statistic)[name]()
                    yield name if statistic == 'avg' else f'{name}_{statistic}', value

    def check_finite(self, learner: Any) -> None:
        """Stop at a value of the window that is not finite, and name the first update that has one."""
        found = []
        for name, remembered in self.monitor.state_dict()['values'].items():
            ages = [age for age, v in remembered if isinstance(v, numbers.Real) and not math.isfinite(v)]
            found += [(age, name, age == remembered[0][0], dict(remembered)[age]) for age in ages[:1]]
        if found:
            age, name, forgotten, value = max(found, key=lambda item: item[0])
            first = learner.train_iter - age + 1
            before = ' (or before)' if forgotten and first > 1 else ''
            raise _diverged(learner, f'iteration {first}{before}: {name} is {value}')

    def check_weights(self, learner: Any) -> None:
        """The same, and at a weight that is not; a mask may be minus infinity."""
        self.check_finite(learner)
        for path, value in tree.zip(learner.policy.state_dict().get('model', {})):
            floats = isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel()
            if floats and not (most := float(value.max())) < math.inf:
                raise _diverged(learner, f'iteration {learner.train_iter}: {most} is in the weights {tree.label(path)}')

    def reduce(self, allreduce: Callable[[torch.Tensor], Any]) -> None:
        """Replace the monitored values of the last update by their mean over all processes."""
        last = self.last or {}
        for name in self._known:
            if last.get(name) is not None:
                value = torch.as_tensor(last[name], dtype=torch.float32).mean()
                allreduce(value)
                last[name] = value

    def close(self) -> None:
        """Close the log files; closing twice is fine."""
        self.text.close()
        self.tb.close()


def _diverged(learner: Any, what: str) -> TrainingError:
    return TrainingError(
        f'{what}; training stopped. Last checkpoint: {learner.last_checkpoint or "none"}. Lower '
        'policy.learn.learning_rate, or set grad_clip_norm: --resume goes on from before it with both'
    )


def _number(value: Any) -> Any:
    """A value as one number, which may still be a tensor: the mean where it has more."""
    if isinstance(value, torch.Tensor):
        return value.detach() if value.numel() == 1 else value.detach().float().mean()
    return float(np.mean(value)) if isinstance(value, (np.ndarray, list, tuple)) else value
