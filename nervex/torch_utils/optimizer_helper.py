"""Adam and RMSprop with gradient clipping and ignoring built in, on ordinary or on flat parameters."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.optim.adam import adam as torch_adam
from torch.optim.adamw import adamw as torch_adamw
from torch.optim.rmsprop import rmsprop as torch_rmsprop

from nervex.torch_utils.flat import FlatParameters
from nervex.torch_utils.gradient_rules import GradientRules, total_norm
from nervex.utils.errors import unknown_name

Params = FlatParameters | Iterable[Any]
_RULE_KEYS = tuple(inspect.signature(GradientRules).parameters)
_CHECK_EVERY = 256  # steps between two walks over the module; the cheap test runs at every step
_AVERAGE, _AVERAGED = 'grad_average', 'grad_average_steps'  # moving average of g^2, and how many gradients are in it
_ONE = torch.ones(())
_DIRECT = hasattr(torch, '_fused_adam_') and hasattr(torch, '_fused_adamw_')  # private: the wrapper costs 60 us a step


class Part(NamedTuple):
    """The arguments of one kernel: lists with an entry for each parameter, or with one entry for all of them, flat."""

    group: dict
    params: list[torch.Tensor]
    grads: list[torch.Tensor]
    moments: dict[str, list[torch.Tensor]]
    steps: list[torch.Tensor]
    averages: list[torch.Tensor]
    states: list[dict]


class RuledOptimizer(torch.optim.Optimizer):
    """
    Overview:
        Base of Adam and RMSprop beside torch's own: rules before the step, ``minimize``, ``apply``, the gradient norm
        and the flat path. There the moments are flat tensors, too, of which ``state[p]`` holds views, and one kernel
        moves everything, until a loss leaves some parameters out: then each gets a step count of its own, as in torch,
        where a parameter without gradient is skipped. ``param_groups``, ``state`` and ``state_dict`` keep torch's
        format in both paths, so that a checkpoint of one loads into the other.
    Interfaces:
        minimize, apply, step, zero_grad, get_grad, state_dict, load_state_dict
    Attributes:
        - flat (:obj:`FlatParameters | None`): what the optimizer was built on; None in ordinary use
        - grad_norm (:obj:`torch.Tensor | None`): total norm of the last step before clipping, if a norm rule is on
    """

    def _setup(self, params: Params, rules: dict, **kwargs: Any) -> None:
        unknown = [k for k in rules if k not in _RULE_KEYS]
        if unknown:
            raise TypeError(unknown_name(f'argument of {type(self).__name__}', unknown[0], _RULE_KEYS))
        self._rules = GradientRules(**rules)
        self._whole: Part | None = None  # everything flat; None before the first step and where steps are uneven
        self._applied = 0
        self.flat = params if isinstance(params, FlatParameters) else None
        self.grad_norm: torch.Tensor | None = None
        given: Any = params if self.flat is None else self.flat.params
        super().__init__(given, **kwargs)  # torch's Adam or RMSprop, which stand between this class and Optimizer

    def minimize(self, loss: torch.Tensor, retain_graph: bool = False) -> torch.Tensor | None:
        """
        Overview:
            Gradient of the loss, rules, one optimizer step. Gradients that a ``backward`` left behind are not used.
        Returns:
            - norm (:obj:`torch.Tensor | None`): see ``apply``
        """
        if self.flat is not None:
            self.flat.gradient(loss, retain_graph)
            return self.apply()
        params = [p for group in self.param_groups for p in group['params'] if p.requires_grad]
        grads = torch.autograd.grad(loss, params, retain_graph=retain_graph, allow_unused=True)
        for p, g in zip(params, grads):
            p.grad = g
        return self.apply()

    def apply(self) -> torch.Tensor | None:
        """
        Overview:
            Rules and one step on the gradient that is there: ``flat.grad``, or every ``p.grad`` in ordinary use. Step
            hooks are not called here, only in ``step``.
        Returns:
            - norm (:obj:`torch.Tensor | None`): total norm before clipping, 0-dim, if a norm rule is on; None otherwise
        """
        self._opt_called = True  # lr schedulers warn when they step before the optimizer
        flat, whole = self.flat, self._whole
        if flat is not None:
            if self._applied % _CHECK_EVERY == 0 or not flat.intact():
                flat.check()
            self._applied += 1
        if flat is not None and whole is not None and not flat.unused:
            whole.grads[0] = flat.grad
            self._apply_to([whole])
        else:
            with torch.no_grad():
                self._apply_to([part for part in self._parts() if part.params])
        if flat is not None:
            flat.touched()
        return self.grad_norm

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """The ordinary step after ``loss.backward()``; on flat parameters every ``p.grad`` is joined first."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self.flat is not None:
            self.flat.gather_grads()
        self.apply()
        return loss

    def get_grad(self) -> float:
        """Total 2-norm of the gradients as they are now: after a step, what the rules left of them."""
        grads = [p.grad.detach() for group in self.param_groups for p in group['params'] if p.grad is not None]
        if not grads and self.flat is not None:
            grads = [self.flat.grad]
        return float(total_norm(grads)) if grads else 0.0

    def add_param_group(self, param_group: dict) -> None:
        """As torch; an optimizer on flat parameters has exactly one group."""
        if self.flat is not None and self.param_groups:
            raise ValueError('an optimizer on FlatParameters has one parameter group; build a second optimizer')
        _without_compiler(super().add_param_group)(self, param_group)

    def state_dict(self) -> dict:
        """As torch. Step counts are copies: parameters share one in the flat path, and must not after loading."""
        found = _without_compiler(super().state_dict)(self)
        if self.flat is not None:
            found['state'] = {i: {**s, 'step': s['step'].clone()} for i, s in found['state'].items()}
        return found

    def load_state_dict(self, state_dict: dict) -> None:
        """As torch; on flat parameters the state is moved into flat tensors again."""
        _without_compiler(super().load_state_dict)(self, state_dict)
        self._whole = None
        if self.flat is not None and self.state:
            self._make_flat(self.flat)

    def _parts(self) -> list[Part]:
        flat = self.flat
        if flat is None:
            return [
                self._part(group, [(p, p.grad) for p in group['params'] if p.grad is not None])
                for group in self.param_groups
            ]
        if not self.state:
            self._make_flat(flat)
            if self._whole is not None and not flat.unused:
                return [self._whole]
        for p in flat.params if self._whole is not None else ():
            self.state[p]['step'] = self.state[p]['step'].clone()
        self._whole = None
        used = [pair for i, pair in enumerate(zip(flat.params, flat.views(flat.grad))) if i not in flat.unused]
        return [self._part(self.param_groups[0], used)]

    def _part(self, group: dict, used: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Part:
        """What the kernel takes of some parameters with their gradients, each with its own state."""
        names, averages = self._moments(group), [_AVERAGE] if self._rules.needs_momentum else []
        states = [self.state[p] for p, _ in used]
        for (p, _), state in zip(used, states):
            if 'step' not in state:
                on_device = group.get('fused') or group.get('capturable') or self.flat is not None
                state['step'] = torch.zeros((), dtype=torch.float32, device=p.device if on_device else None)
            for name in (*names, *averages):
                if name not in state:
                    state[name] = torch.zeros_like(p, memory_format=torch.preserve_format)
            if averages:
                state.setdefault(_AVERAGED, 0)
        return Part(
            group,
            [p for p, _ in used],
            [g for _, g in used],
            {name: [state[name] for state in states] for name in names},
            [state['step'] for state in states],
            [state[name] for name in averages for state in states],
            states,
        )

    def _make_flat(self, flat: FlatParameters) -> None:
        """The state as it is, with zeros where there is none, in flat tensors."""
        part = self._part(self.param_groups[0], [(p, p) for p in flat.params])
        whole = {name: torch.cat([t.reshape(-1) for t in tensors]) for name, tensors in part.moments.items()}
        averages = {_AVERAGE: torch.cat([t.reshape(-1) for t in part.averages])} if part.averages else {}
        for name, tensor in (whole | averages).items():
            for state, view in zip(part.states, flat.views(tensor)):
                state[name] = view
        steps = [step.to(flat.data.device, copy=True) for step in part.steps]
        together = len({(float(step), state.get(_AVERAGED)) for step, state in zip(steps, part.states)}) == 1
        for state, step in zip(part.states, steps):
            state['step'] = steps[0] if together else step
        if together:
            moments = {name: [tensor] for name, tensor in whole.items()}
            lists = [flat.data], [flat.grad], moments, steps[:1], list(averages.values())
            self._whole = Part(part.group, *lists, part.states)

    def _apply_to(self, parts: list[Part]) -> None:
        if parts and self._rules.active:
            self._apply_rules(parts)
        for part in parts:
            self._kernel(part)

    def _apply_rules(self, parts: list[Part]) -> None:
        grads, averages = [g for part in parts for g in part.grads], [a for part in parts for a in part.averages]
        if not averages:
            self.grad_norm = self._rules.apply(grads)
            return
        rates = {self._average_rate(part.group) for part in parts}
        if len(rates) > 1:
            raise ValueError(f'the momentum rules need one averaging rate; the parameter groups have {sorted(rates)}')
        states = [state for part in parts for state in part.states]
        counts = [state[_AVERAGED] for state in states]
        self.grad_norm = self._rules.apply(grads, averages, counts[: len(grads)], rates.pop())
        for state in states:
            state[_AVERAGED] += 1

    def _moments(self, group: dict) -> tuple[str, ...]:
        """Names of the state tensors that have the parameter's shape."""
        raise NotImplementedError

    def _average_rate(self, group: dict) -> float:
        raise NotImplementedError

    def _kernel(self, part: Part) -> None:
        """One optimizer step on lists of tensors; counts the steps up."""
        raise NotImplementedError


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
        how: dict[str, Any] = dict(amsgrad=amsgrad, foreach=foreach, fused=fused, maximize=maximize)
        self._setup(params, rules, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, **how)
        for group in (self.defaults, *self.param_groups):  # so that torch's own Adam goes on alike (2.7 and newer)
            group['decoupled_weight_decay'] = self._decoupled

    def _moments(self, group: dict) -> tuple[str, ...]:
        return ('exp_avg', 'exp_avg_sq', 'max_exp_avg_sq') if group['amsgrad'] else ('exp_avg', 'exp_avg_sq')

    def _average_rate(self, group: dict) -> float:
        return float(group['betas'][1])

    def _kernel(self, part: Part) -> None:
        group, steps, lr = part.group, part.steps, part.group['lr']
        step: Callable = torch_adamw if self._decoupled else torch_adam
        if self.flat is None:
            step = partial(step, **{key: group[key] for key in ('foreach', 'fused', 'capturable', 'differentiable')})
        elif not _DIRECT or steps[0].device.type != 'cpu' or isinstance(lr, torch.Tensor):
            step = partial(step, fused=True)
        else:
            step = torch._fused_adamw_ if self._decoupled else torch._fused_adam_
            if len(steps) == 1:
                steps[0].add_(_ONE)  # a third of the time with a number, which becomes a tensor first
            else:
                torch._foreach_add_(steps, 1)
        firsts, seconds, *largest = part.moments.values()
        step(
            part.params,
            part.grads,
            firsts,
            seconds,
            largest[0] if largest else [],
            steps,
            lr=lr,
            beta1=group['betas'][0],
            beta2=group['betas'][1],
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
            **{key: value for key, value in part.group.items() if key in _RMSPROP_KEYS},
        )


#: what torch's function takes of a parameter group, beside what it is given by name
_RMSPROP_KEYS = inspect.signature(torch_rmsprop).parameters.keys() - {'params', 'foreach'}


def _without_compiler(method: Callable) -> Callable:
    """
    Overview:
        The function of a torch method without the wrapper that keeps torch's compiler out of it: its first call imports
        that compiler, which takes a second at the start of every run.
    """
    function = getattr(method, '__func__', method)
    return getattr(function, '__wrapped__', function)
