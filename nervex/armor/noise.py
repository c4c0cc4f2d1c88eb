"""The plugin that explores by noise on continuous actions."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from nervex.armor.plugin import IArmorStatefulPlugin, row_ids
from nervex.armor.sampling import Draws
from nervex.utils.errors import UnknownNameError, unknown_name

_SETTINGS = {'gauss': dict(mu=0.0, sigma=1.0), 'ou': dict(mu=0.0, sigma=0.3, theta=0.15, dt=1e-2, x0=0.0)}


class ActionNoisePlugin(IArmorStatefulPlugin):
    """
    Overview:
        Adds noise to ``output['action']`` and keeps the result in the action range, in a new tensor. 'gauss':
        independent normal noise. 'ou': Ornstein-Uhlenbeck noise, x <- x + theta (mu - x) dt + sigma sqrt(dt) n, which
        drifts; each row (environment) has an x of its own, which ``reset`` takes back to ``x0``.
    Arguments:
        - noise_type (:obj:`str`): ``'gauss'`` or ``'ou'``
        - noise_kwargs (:obj:`dict | None`): its settings: ``mu`` and ``sigma``; of 'ou' also ``theta, dt, x0``
        - noise_range (:obj:`dict | None`): ``{'min': ..., 'max': ...}`` limits of the noise, None does not limit
        - action_range (:obj:`dict | None`): limits of the noisy action, numbers or one for each dimension
        - seed (:obj:`int | None`): of the source of chance, see ``Draws``
    Shapes:
        - action (:obj:`torch.FloatTensor`): :math:`(B, *)`, or a list of them
    """

    resume_parts = ('_draws', '_drift')

    def __init__(
        self,
        noise_type: str = 'gauss',
        noise_kwargs: Mapping[str, Any] | None = None,
        noise_range: Mapping[str, Any] | None = None,
        action_range: Mapping[str, Any] | None = {'min': -1.0, 'max': 1.0},
        seed: int | None = None,
    ) -> None:
        if noise_type not in _SETTINGS:
            raise UnknownNameError(unknown_name('noise_type', noise_type, _SETTINGS))
        self._set = {**_SETTINGS[noise_type], **(noise_kwargs or {})}
        for name in self._set.keys() - _SETTINGS[noise_type].keys():
            raise UnknownNameError(unknown_name(f"setting of '{noise_type}' noise", name, _SETTINGS[noise_type]))
        for name in {'sigma', 'dt'} & self._set.keys():
            if self._set[name] < 0.0:
                raise ValueError(f'action noise {name} is at least 0, got {self._set[name]}')
        self._drift: dict[tuple[int, int], Tensor] | None = {} if noise_type == 'ou' else None  # by head and row
        self._noise_range = _limits(noise_range, 'noise_range')
        self._action_range = _limits(action_range, 'action_range')
        self._draws = Draws(seed)

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def action_noise_forward(data: Any, *args: Any, data_id: Any = None, **kwargs: Any) -> dict:
            if data_id is not None:
                kwargs['data_id'] = data_id  # an inner plugin may ask for it too
            output = forward(data, *args, **kwargs)
            if 'action' not in output:
                raise UnknownNameError(f"'action_noise' needs a model that returns 'action', got {sorted(output)}")
            action = output['action']
            if isinstance(action, Tensor):
                return {**output, 'action': self._noisy(action, data_id)}
            return {**output, 'action': [self._noisy(part, data_id, head) for head, part in enumerate(action)]}

        return action_noise_forward

    @torch.no_grad()
    def _noise(self, action: Tensor, data_id: Any, head: int) -> Tensor:
        given, generator = self._set, self._draws.on(action.device)
        drawn = torch.randn(action.shape, dtype=action.dtype, device=action.device, generator=generator)
        if self._drift is None:
            return drawn.mul_(given['sigma']).add_(given['mu'])
        ids = range(len(action)) if data_id is None else row_ids(data_id)
        if len(ids) != len(action):
            raise ValueError(f'action noise: {len(action)} actions for the {len(ids)} rows {list(ids)} of data_id')
        if not ids:
            return drawn
        start = torch.full_like(action[0], given['x0'])
        x = torch.stack([self._drift.get((head, i), start) for i in ids])
        x = x + given['theta'] * (given['mu'] - x) * given['dt'] + given['sigma'] * math.sqrt(given['dt']) * drawn
        self._drift.update({(head, i): row for i, row in zip(ids, x.unbind(0))})
        return x

    def _noisy(self, action: Tensor, data_id: Any, head: int = 0) -> Tensor:
        if not action.is_floating_point():
            raise TypeError(
                f"'action_noise' is for continuous actions, got {action.dtype}; discrete ones explore by "
                "'eps_greedy_sample' or 'multinomial_sample'"
            )
        return _clamped(action + _clamped(self._noise(action, data_id, head), self._noise_range), self._action_range)

    def reset(self, data_id: Any = None) -> None:
        """Noise with a memory starts anew, for all rows or those of ``data_id``."""
        if self._drift:
            gone = None if data_id is None else row_ids(data_id)
            self._drift = {key: x for key, x in self._drift.items() if gone is not None and key[1] not in gone}


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
    if all(isinstance(limit, (int, float)) for limit in limits):
        return x.clamp(*limits)
    low, high = (torch.as_tensor(limit, dtype=x.dtype, device=x.device) for limit in limits)
    return x.maximum(low).minimum(high)
