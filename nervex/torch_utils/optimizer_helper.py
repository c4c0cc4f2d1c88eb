"""Adam and RMSprop with gradient clipping and ignoring built in, on ordinary or on flat parameters."""

import inspect
from functools import partial
from typing import Any

import torch
from torch.optim.adam import adam as torch_adam
from torch.optim.adamw import adamw as torch_adamw
from torch.optim.rmsprop import rmsprop as torch_rmsprop

from nervex.torch_utils.flat import FlatParameters
from nervex.torch_utils.ruled_optimizer import Params, RuledOptimizer
from nervex.utils.errors import unknown_name

_DECOUPLED = 'decoupled_weight_decay'  # torch 2.7 and newer: Adam itself can do what AdamW does
_DIRECT = hasattr(torch, '_fused_adam_') and hasattr(torch, '_fused_adamw_')  # private: the wrapper costs 60 us a step


class Adam(RuledOptimizer, torch.optim.Adam):
    """
    Overview:
        torch's Adam and AdamW with clip and ignore rules, see ``GradientRules``. Built on ``module.parameters()`` it is
        used as any torch optimizer; built on ``FlatParameters`` one step is one fused kernel over one tensor.
    Interfaces:
        minimize, apply, step, zero_grad, get_grad, state_dict, load_state_dict
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        optim_type: str = 'adam',
        *,
        foreach: bool | None = None,
        fused: bool | None = None,
        maximize: bool = False,
        **rules: Any,
    ) -> None:
        """
        Arguments:
            - params (:obj:`Params`): parameters, parameter groups, or one FlatParameters
            - optim_type (:obj:`str`): 'adam' (weight decay enters the gradient) or 'adamw' (it shrinks the weights)
            - foreach, fused (:obj:`bool | None`): torch's implementation to use in ordinary use; None lets torch choose
            - rules: grad_clip_type, clip_value, ..., grad_ignore_type, ignore_value, ...; see ``GradientRules``
        """
        if optim_type not in ('adam', 'adamw'):
            raise ValueError(unknown_name('optim_type', optim_type, ('adam', 'adamw')))
        self._decoupled = optim_type == 'adamw'
        kwargs: dict[str, Any] = {_DECOUPLED: self._decoupled}
        self._native_decay = _DECOUPLED in inspect.signature(torch.optim.Adam.__init__).parameters
        self._setup(
            params,
            rules,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            foreach=foreach,
            fused=fused,
            maximize=maximize,
            **(kwargs if self._native_decay else {}),
        )

    def _apply_ordinary(self) -> None:
        if not self._decoupled or self._native_decay:
            return super()._apply_ordinary()
        decays = [group['weight_decay'] for group in self.param_groups]  # torch before 2.7: shrink here
        for group in self.param_groups:
            used = [p for p in group['params'] if p.grad is not None]
            if used and group['weight_decay']:
                torch._foreach_mul_(used, 1.0 - float(group['lr']) * group['weight_decay'])
            group['weight_decay'] = 0.0
        try:
            super()._apply_ordinary()
        finally:
            for group, decay in zip(self.param_groups, decays):
                group['weight_decay'] = decay

    def _step_device(self, flat: FlatParameters) -> torch.device:
        return flat.data.device

    def _moments(self, group: dict) -> tuple[str, ...]:
        return ('exp_avg', 'exp_avg_sq', 'max_exp_avg_sq') if group['amsgrad'] else ('exp_avg', 'exp_avg_sq')

    def _average_rate(self, group: dict) -> float:
        return float(group['betas'][1])

    def _kernel(self, params: list, grads: list, moments: dict[str, list], steps: list, group: dict) -> None:
        beta1, beta2 = group['betas']
        firsts, seconds = moments['exp_avg'], moments['exp_avg_sq']
        largest = moments.get('max_exp_avg_sq', [])
        lr = group['lr']
        direct = _DIRECT and params[0].device.type == 'cpu' and not isinstance(lr, torch.Tensor)
        if direct:
            if len(steps) == 1:
                steps[0].add_(1)  # a third of the time of the other form
            else:
                torch._foreach_add_(steps, 1)
            step = torch._fused_adamw_ if self._decoupled else torch._fused_adam_
        else:
            step = partial(torch_adamw if self._decoupled else torch_adam, fused=True)
        step(
            params,
            grads,
            firsts,
            seconds,
            largest,
            steps,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            eps=group['eps'],
            weight_decay=group['weight_decay'],
            amsgrad=group['amsgrad'],
            maximize=group['maximize'],
        )


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
        self._setup(
            params,
            rules,
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            foreach=foreach,
            maximize=maximize,
        )

    def _moments(self, group: dict) -> tuple[str, ...]:
        names: tuple[str, ...] = ('square_avg',)
        names += ('momentum_buffer',) if group['momentum'] > 0 else ()
        return names + (('grad_avg',) if group['centered'] else ())

    def _average_rate(self, group: dict) -> float:
        return float(group['alpha'])

    def _kernel(self, params: list, grads: list, moments: dict[str, list], steps: list, group: dict) -> None:
        torch_rmsprop(
            params,
            grads,
            moments['square_avg'],
            moments.get('grad_avg', []),
            moments.get('momentum_buffer', []),
            steps,
            foreach=False,
            lr=group['lr'],
            alpha=group['alpha'],
            eps=group['eps'],
            weight_decay=group['weight_decay'],
            momentum=group['momentum'],
            centered=group['centered'],
            maximize=group['maximize'],
        )
