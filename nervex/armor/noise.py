"""Noise on continuous actions: the processes and the plugin."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from nervex.utils.errors import UnknownNameError, unknown_name

from .plugin import IArmorStatefulPlugin, row_ids
from .sampling import Draws

#: draws noise for the rows of an action: (action, ids of the rows or None, generator) -> tensor like action
NoiseProcess = Callable[[Tensor, list[int] | None, torch.Generator], Tensor]


class GaussProcess:
    """Independent normal noise with mean ``mu`` and standard deviation ``sigma``."""

    def __init__(self, mu: float = 0.0, sigma: float = 1.0) -> None:
        self.mu, self.sigma = mu, _positive(sigma, 'sigma')

    def __call__(self, action: Tensor, ids: list[int] | None, generator: torch.Generator) -> Tensor:
        return _normal(action, generator).mul_(self.sigma).add_(self.mu)

    def reset(self, ids: list[int] | None = None) -> None:
        """Nothing to forget."""


class OUProcess:
    """
    Overview:
        Ornstein-Uhlenbeck noise, x <- x + theta (mu - x) dt + sigma sqrt(dt) n: noise that drifts. Each row
        (environment) has a process of its own, which ``reset`` takes back to ``x0``.
    """

    def __init__(
        self, mu: float = 0.0, sigma: float = 0.3, theta: float = 0.15, dt: float = 1e-2, x0: float = 0.0
    ) -> None:
        self.mu, self.sigma = mu, _positive(sigma, 'sigma')
        self.theta, self.dt, self.x0 = theta, _positive(dt, 'dt'), x0
        self._x: dict[int, Tensor] = {}

    def __call__(self, action: Tensor, ids: list[int] | None, generator: torch.Generator) -> Tensor:
        ids = list(range(len(action))) if ids is None else ids
        if len(ids) != len(action):
            raise ValueError(f'action noise: {len(action)} actions for the {len(ids)} rows {ids} of data_id')
        start = torch.full_like(action[0], self.x0) if ids else action
        x = torch.stack([self._x.get(i, start) for i in ids]) if ids else action
        x = x + self.theta * (self.mu - x) * self.dt + self.sigma * math.sqrt(self.dt) * _normal(action, generator)
        self._x.update(zip(ids, x.unbind(0)))
        return x

    def reset(self, ids: list[int] | None = None) -> None:
        """Start anew, all rows or some."""
        for i in list(self._x) if ids is None else ids:
            self._x.pop(i, None)


_PROCESSES: dict[str, type] = {'gauss': GaussProcess, 'ou': OUProcess}


class ActionNoisePlugin(IArmorStatefulPlugin):
    """
    Overview:
        Adds noise to ``output['action']`` and keeps the result in the action range, in a new tensor.
    Arguments:
        - noise_type (:obj:`str | Callable`): ``'gauss'``, ``'ou'``, or a ``NoiseProcess`` of your own
        - noise_kwargs (:obj:`dict | None`): settings of the process, e.g. ``{'mu': 0., 'sigma': 0.1}``
        - noise_range (:obj:`dict | None`): ``{'min': ..., 'max': ...}`` limits of the noise, None does not limit
        - action_range (:obj:`dict | None`): limits of the noisy action, numbers or one for each dimension
        - seed (:obj:`int | None`), generator (:obj:`torch.Generator | None`): source of chance, see ``Draws``
    Shapes:
        - action (:obj:`torch.FloatTensor`): :math:`(B, *)`, or a list of them
    """

    def __init__(
        self,
        noise_type: str | NoiseProcess = 'gauss',
        noise_kwargs: Mapping[str, Any] | None = None,
        noise_range: Mapping[str, Any] | None = None,
        action_range: Mapping[str, Any] | None = {'min': -1.0, 'max': 1.0},
        seed: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        if isinstance(noise_type, str) and noise_type not in _PROCESSES:
            raise UnknownNameError(unknown_name('noise_type', noise_type, _PROCESSES))
        self._make = _PROCESSES[noise_type] if isinstance(noise_type, str) else (lambda **_: noise_type)
        self._noise_kwargs = dict(noise_kwargs or {})
        self.processes: list[Any] = [self._make(**self._noise_kwargs)]
        self._noise_range = _limits(noise_range, 'noise_range')
        self._action_range = _limits(action_range, 'action_range')
        self._draws = Draws(seed, generator)

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def action_noise_forward(data: Any, *args: Any, data_id: Any = None, **kwargs: Any) -> dict:
            if data_id is not None:
                kwargs['data_id'] = data_id  # an inner plugin may ask for it too
            output = forward(data, *args, **kwargs)
            if 'action' not in output:
                raise UnknownNameError(f"'action_noise' needs a model that returns 'action', got {sorted(output)}")
            action, ids = output['action'], None if data_id is None else row_ids(data_id)
            if isinstance(action, Tensor):
                return {**output, 'action': self._noisy(action, ids, self.processes[0])}
            while len(self.processes) < len(action):
                self.processes.append(self._make(**self._noise_kwargs))
            noisy = [self._noisy(part, ids, process) for part, process in zip(action, self.processes)]
            return {**output, 'action': noisy}

        return action_noise_forward

    def reset(self, data_id: Any = None) -> None:
        """Noise with a memory starts anew, for all rows or those of ``data_id``."""
        ids = None if data_id is None else row_ids(data_id)
        for process in self.processes:
            if hasattr(process, 'reset'):
                process.reset(ids)

    def state_dict(self) -> dict[str, Any]:
        """Random generator and the state of drifting noise."""
        drift = [dict(getattr(process, '_x', {})) for process in self.processes]
        return {'draws': self._draws.state_dict(), 'drift': drift}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the sequence of noise."""
        self._draws.load_state_dict(state['draws'])
        while len(self.processes) < len(state['drift']):
            self.processes.append(self._make(**self._noise_kwargs))
        for process, drift in zip(self.processes, state['drift']):
            if hasattr(process, '_x'):
                process._x = dict(drift)

    def _noisy(self, action: Tensor, ids: list[int] | None, process: Any) -> Tensor:
        if not action.is_floating_point():
            raise TypeError(
                f"'action_noise' is for continuous actions, got {action.dtype}; discrete ones explore by "
                "'eps_greedy_sample' or 'multinomial_sample'"
            )
        with torch.no_grad():
            noise = _clamped(process(action, ids, self._draws.on(action.device)), self._noise_range)
        return _clamped(action + noise, self._action_range)


def _normal(action: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(action.shape, dtype=action.dtype, device=action.device, generator=generator)


def _positive(value: float, name: str) -> float:
    if value < 0.0:
        raise ValueError(f'action noise {name} is at least 0, got {value}')
    return value


def _limits(limits: Mapping[str, Any] | None, name: str) -> tuple[Any, Any] | None:
    if limits is None:
        return None
    if set(limits) != {'min', 'max'}:
        raise ValueError(f"{name} is None or {{'min': ..., 'max': ...}}, got {dict(limits)}")
    low, high = limits['min'], limits['max']
    if not (torch.as_tensor(low) <= torch.as_tensor(high)).all():
        raise ValueError(f'{name} needs min <= max, got {low} and {high}')
    return low, high


def _clamped(x: Tensor, limits: tuple[Any, Any] | None) -> Tensor:
    if limits is None:
        return x
    low, high = limits
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return x.clamp(low, high)
    low, high = (torch.as_tensor(limit, dtype=x.dtype, device=x.device) for limit in limits)
    return x.maximum(low).minimum(high)
