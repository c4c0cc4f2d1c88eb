"""Adam and RMSprop with gradient clipping and ignoring built in, on ordinary or on flat parameters."""

from typing import Any

import torch
from torch.optim.rmsprop import rmsprop as torch_rmsprop

from nervex.torch_utils.ruled_optimizer import Adam as Adam
from nervex.torch_utils.ruled_optimizer import Params, Part, RuledOptimizer


class RMSprop(RuledOptimizer, torch.optim.RMSprop):
    """
    Overview:
        torch's RMSprop with clip and ignore rules, see ``GradientRules``; ``alpha`` is the rate of their average.
    Interfaces:
        minimize, apply, step, zero_grad, get_grad, state_dict, load_state_dict
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        **rules: Any,
    ) -> None:
        how: dict[str, Any] = dict(momentum=momentum, centered=centered, foreach=foreach, maximize=maximize)
        self._setup(params, rules, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, **how)

    def _moments(self, group: dict) -> tuple[str, ...]:
        names: tuple[str, ...] = ('square_avg',)
        names += ('momentum_buffer',) if group['momentum'] > 0 else ()
        return names + (('grad_avg',) if group['centered'] else ())

    def _average_rate(self, group: dict) -> float:
        return float(group['alpha'])

    def _kernel(self, part: Part) -> None:
        torch_rmsprop(
            part.params,
            part.grads,
            part.moments['square_avg'],
            part.moments.get('grad_avg', []),
            part.moments.get('momentum_buffer', []),
            part.steps,
            foreach=part.group['foreach'] if self.flat is None else False,
            **{key: part.group[key] for key in _RMSPROP_KEYS},
        )


_RMSPROP_KEYS = (
    'lr',
    'alpha',
    'eps',
    'weight_decay',
    'momentum',
    'centered',
    'maximize',
    'capturable',
    'differentiable',
)
