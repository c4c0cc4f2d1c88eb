"""The eight rules that clip a gradient or ignore a bad one before an optimizer uses it."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from nervex.utils.errors import unknown_name

KINDS = ('value', 'norm', 'momentum', 'momentum_norm')


class _Rule(NamedTuple):
    """A limit of single elements, or of the norm: a value, or a multiple of what the moving average says."""

    kind: str
    value: float
    coef: float
    norm_type: float
    start: int


class GradientRules:
    """
    Overview:
        One clip rule and one ignore rule, on a list of gradient tensors (a single flat one, or one per parameter), in
        place. The ignore rule looks at the gradient as it came and is applied first; it sets all gradients to zero,
        also when one of them is not finite. No rule waits for the device.

        | type | rule |
        |---|---|
        | clip_value / ignore_value | clamp every element to +-value / ignore if any abs(g) > value |
        | clip_norm / ignore_norm | scale down to a global norm of value / ignore if the norm is larger |
        | clip_momentum / ignore_momentum | clamp every element to +-coef * sqrt(v) / ignore if any is larger |
        | clip_momentum_norm / ignore_momentum_norm | as the norm rules, with the norm of coef * sqrt(v) for the value |

        ``v`` is the bias-corrected moving average (rate beta2) of the squared gradient before clipping, the present one
        included. The momentum rules start after ``momentum_timestep`` steps (the clipping of Dota 2,
        https://arxiv.org/abs/1912.06680).
    """

    def __init__(
        self,
        grad_clip_type: str | None = None,
        clip_value: float | None = None,
        clip_coef: float = 5.0,
        clip_norm_type: float = 2.0,
        clip_momentum_timestep: int = 100,
        grad_ignore_type: str | None = None,
        ignore_value: float | None = None,
        ignore_coef: float = 5.0,
        ignore_norm_type: float = 2.0,
        ignore_momentum_timestep: int = 100,
    ) -> None:
        clip = grad_clip_type, clip_value, clip_coef, clip_norm_type, clip_momentum_timestep
        ignore = grad_ignore_type, ignore_value, ignore_coef, ignore_norm_type, ignore_momentum_timestep
        self._clip, self._ignore = _rule('clip', *clip), _rule('ignore', *ignore)
        rules = [rule for rule in (self._clip, self._ignore) if rule]
        self.active = bool(rules)
        self.needs_momentum = any('momentum' in rule.kind for rule in rules)

    @torch.no_grad()
    def apply(
        self,
        grads: Sequence[torch.Tensor],
        averages: Sequence[torch.Tensor] = (),
        steps: Sequence[int] = (),
        beta2: float = 0.999,
    ) -> torch.Tensor | None:
        """
        Arguments:
            - grads (:obj:`Sequence[torch.Tensor]`): changed in place
            - averages (:obj:`Sequence[torch.Tensor]`): moving average of g^2 per gradient, changed in place
            - steps (:obj:`Sequence[int]`): how many gradients each average has seen before this one
            - beta2 (:obj:`float`): rate of the moving average
        Returns:
            - norm (:obj:`torch.Tensor | None`): total norm before clipping, 0-dim, where a norm rule had to compute it
        """
        bounds: list[torch.Tensor] = []
        if self.needs_momentum:
            bounds = [_update_average(average, g, step, beta2) for g, average, step in zip(grads, averages, steps)]
        norm: torch.Tensor | None = None
        for rule, ignores in ((self._ignore, True), (self._clip, False)):
            if rule is None or ('momentum' in rule.kind and min(steps) < rule.start):
                continue
            if 'norm' in rule.kind:
                found = _by_norm(rule, grads, bounds, ignores)
                norm = found if norm is None else norm
            else:
                _by_element(rule, grads, bounds, ignores)
        return norm


def _by_element(rule: _Rule, grads: Sequence, bounds: list[torch.Tensor], ignores: bool) -> None:
    limits: list = [bound * rule.coef for bound in bounds] if rule.kind == 'momentum' else [rule.value] * len(grads)
    if ignores:
        _zero_unless(torch.stack([(g.abs() <= limit).all() for g, limit in zip(grads, limits)]).all(), grads)
        return
    for g, limit in zip(grads, limits):
        torch.clamp(g, -limit, limit, out=g)


def _by_norm(rule: _Rule, grads: Sequence, bounds: list[torch.Tensor], ignores: bool) -> torch.Tensor:
    norm = total_norm(grads, rule.norm_type)
    limit = rule.value if rule.kind == 'norm' else total_norm(bounds, rule.norm_type) * rule.coef
    if ignores:
        _zero_unless(norm <= limit, grads)
        return norm
    scale = torch.clamp(limit / (norm + 1e-6), max=1.0)
    for g in grads:
        g.mul_(scale)
    return norm


def _zero_unless(fine: torch.Tensor, grads: Sequence[torch.Tensor]) -> None:
    for g in grads:
        g.masked_fill_(~fine, 0.0)


def total_norm(tensors: Sequence[torch.Tensor], norm_type: float = 2.0) -> torch.Tensor:
    """Norm of all elements of several tensors together, 0-dim."""
    if len(tensors) == 1:
        return torch.linalg.vector_norm(tensors[0], norm_type)
    return torch.linalg.vector_norm(torch.stack(torch._foreach_norm(list(tensors), norm_type)), norm_type)


def _update_average(average: torch.Tensor, g: torch.Tensor, step: int, beta2: float) -> torch.Tensor:
    """The bias-corrected root of the average; an element that is not finite leaves it where it was."""
    correction, correction_before = 1.0 - beta2 ** (step + 1), 1.0 - beta2**step
    new = average.mul(beta2).addcmul_(g, g, value=1.0 - beta2)
    unchanged = average * (correction / correction_before) if step else average
    average.copy_(torch.where(torch.isfinite(new), new, unchanged))
    return average.div(correction).sqrt_()


def _rule(
    action: str, given: str | None, value: float | None, coef: float, norm_type: float, start: int
) -> _Rule | None:
    for name, number in (('coef', coef), ('norm_type', norm_type)):
        if not number > 0:
            raise ValueError(f'{action}_{name} must be positive, got {number!r}')
    if given is None:
        return None
    known = [f'{action}_{kind}' for kind in KINDS]
    if given not in known:
        raise ValueError(unknown_name(f'grad_{action}_type', given, known))
    if 'momentum' not in given and (value is None or not value > 0):
        raise ValueError(f"grad_{action}_type='{given}' needs {action}_value > 0, got {value!r}")
    return _Rule(given.removeprefix(f'{action}_'), value or 0.0, coef, float(norm_type), start)
