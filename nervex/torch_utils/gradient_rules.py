"""The eight rules that clip a gradient or ignore a bad one before an optimizer uses it."""

from collections.abc import Iterable, Sequence

import torch

from nervex.utils.errors import unknown_name

RULES = ('value', 'norm', 'momentum', 'momentum_norm')
CLIP_TYPES = tuple(f'clip_{r}' for r in RULES)
IGNORE_TYPES = tuple(f'ignore_{r}' for r in RULES)


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
        _check_type('grad_clip_type', grad_clip_type, CLIP_TYPES, 'clip_value', clip_value)
        _check_type('grad_ignore_type', grad_ignore_type, IGNORE_TYPES, 'ignore_value', ignore_value)
        for name, value in (
            ('clip_coef', clip_coef),
            ('ignore_coef', ignore_coef),
            ('clip_norm_type', clip_norm_type),
            ('ignore_norm_type', ignore_norm_type),
        ):
            if not value > 0:
                raise ValueError(f'{name} must be positive, got {value!r}')
        self.clip = grad_clip_type and grad_clip_type[len('clip_') :]
        self.ignore = grad_ignore_type and grad_ignore_type[len('ignore_') :]
        self.clip_value, self.clip_coef = clip_value or 0.0, clip_coef
        self.clip_norm_type, self.clip_start = float(clip_norm_type), clip_momentum_timestep
        self.ignore_value, self.ignore_coef = ignore_value or 0.0, ignore_coef
        self.ignore_norm_type, self.ignore_start = float(ignore_norm_type), ignore_momentum_timestep
        self.active = bool(self.clip or self.ignore)
        self.needs_momentum = 'momentum' in (self.clip or '') or 'momentum' in (self.ignore or '')

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
        if not self.active:
            return None
        bounds: list[torch.Tensor] = []
        if self.needs_momentum:
            for g, average, step in zip(grads, averages, steps):
                bounds.append(_update_average(average, g, step, beta2))
        norm = None
        if self.ignore:
            norm = self._apply_ignore(grads, bounds, steps)
        if self.clip:
            clip_norm = self._apply_clip(grads, bounds, steps)
            norm = clip_norm if norm is None else norm
        return norm

    def _apply_ignore(self, grads: Sequence, bounds: list, steps: Sequence[int]) -> torch.Tensor | None:
        norm = None
        if self.ignore == 'value':
            fine = _all(g.abs() <= self.ignore_value for g in grads)
        elif self.ignore == 'norm':
            norm = total_norm(grads, self.ignore_norm_type)
            fine = norm <= self.ignore_value
        elif min(steps) < self.ignore_start:
            return None
        elif self.ignore == 'momentum':
            fine = _all(g.abs() <= bound * self.ignore_coef for g, bound in zip(grads, bounds))
        else:
            norm = total_norm(grads, self.ignore_norm_type)
            fine = norm <= total_norm(bounds, self.ignore_norm_type) * self.ignore_coef
        for g in grads:
            g.masked_fill_(~fine, 0.0)
        return norm

    def _apply_clip(self, grads: Sequence, bounds: list, steps: Sequence[int]) -> torch.Tensor | None:
        if self.clip == 'value':
            for g in grads:
                g.clamp_(-self.clip_value, self.clip_value)
            return None
        if self.clip == 'norm':
            return _scale_to(grads, self.clip_value, self.clip_norm_type)
        if min(steps) < self.clip_start:
            return None
        if self.clip == 'momentum':
            for g, bound in zip(grads, bounds):
                limit = bound * self.clip_coef
                torch.clamp(g, -limit, limit, out=g)
            return None
        return _scale_to(grads, total_norm(bounds, self.clip_norm_type) * self.clip_coef, self.clip_norm_type)


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


def _scale_to(grads: Sequence[torch.Tensor], limit: float | torch.Tensor, norm_type: float) -> torch.Tensor:
    norm = total_norm(grads, norm_type)
    scale = torch.clamp(limit / (norm + 1e-6), max=1.0)
    for g in grads:
        g.mul_(scale)
    return norm


def _all(parts: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.stack([part.all() for part in parts]).all()


def _check_type(key: str, given: str | None, known: tuple, value_key: str, value: float | None) -> None:
    if given is None:
        return
    if given not in known:
        raise ValueError(unknown_name(key, given, known))
    if 'momentum' not in given and (value is None or not value > 0):
        raise ValueError(f"{key}='{given}' needs {value_key} > 0, got {value!r}")
