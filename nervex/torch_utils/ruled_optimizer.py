"""What Adam and RMSprop share: gradient rules, ``minimize``, and steps on flat parameters."""

import inspect
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

import torch

from nervex.torch_utils.flat import FlatParameters
from nervex.torch_utils.gradient_rules import GradientRules, total_norm
from nervex.utils.errors import unknown_name

_RULE_KEYS = tuple(inspect.signature(GradientRules).parameters)
_CHECK_EVERY = 256  # steps between two walks over the module; the cheap test runs at every step
Params = FlatParameters | Iterable[Any]
Pieces = tuple[list, list, dict[str, list], list, list, list]


class FlatState:
    """
    Overview:
        Moments are flat tensors; ``state[p]`` holds views of them. All parameters share one step count (lockstep)
        until a loss leaves some of them out: then each gets its own, as in torch, where a parameter without gradient
        is skipped.
    Interfaces:
        whole, pieces, count, adopt
    """

    def __init__(
        self,
        flat: FlatParameters,
        state: MutableMapping,
        moments: tuple[str, ...],
        averages: bool,
        device: torch.device,
    ) -> None:
        self._flat, self._state = flat, state
        names = moments + (('grad_average',) if averages else ())
        self._tensors = {name: torch.zeros_like(flat.data) for name in names}
        self._moments, self._averages = moments, averages
        self._steps = [torch.zeros((), dtype=torch.float32, device=device)]
        self._counts = [0] * len(flat.params)  # gradients that each moving average has seen
        self.lockstep = True
        self._publish()

    def whole(self) -> Pieces:
        """The arguments of one kernel over everything."""
        averages = [self._tensors['grad_average']] if self._averages else []
        return [self._flat.data], [self._flat.grad], self._whole_moments, averages, self._steps, self._counts[:1]

    def pieces(self, unused: Iterable[int]) -> Pieces:
        """The same as lists with one entry per parameter, without the unused ones."""
        if self.lockstep:
            self._steps = [self._steps[0].clone() for _ in self._flat.params]
            self.lockstep = False
            self._publish()
        skipped = set(unused)
        used = [i for i in range(len(self._flat.params)) if i not in skipped]
        cut = {name: self._flat.views(t) for name, t in self._tensors.items()}
        grads, data = self._flat.views(self._flat.grad), self._flat.views(self._flat.data)
        averages = [cut['grad_average'][i] for i in used] if self._averages else []
        moments = {name: [cut[name][i] for i in used] for name in self._moments}
        return (
            [data[i] for i in used],
            [grads[i] for i in used],
            moments,
            averages,
            [self._steps[i] for i in used],
            [self._counts[i] for i in used],
        )

    def count(self, unused: Iterable[int]) -> None:
        """One more gradient has entered the moving averages."""
        if self._averages:
            skipped = set(unused)
            for i, p in enumerate(self._flat.params):
                if i not in skipped:
                    self._counts[i] += 1
                    self._state[p]['grad_average_steps'] = self._counts[i]

    def adopt(self, loaded: MutableMapping) -> None:
        """Take over per-parameter state, e.g. from a checkpoint, possibly of an ordinary optimizer."""
        params = self._flat.params
        for name, tensor in self._tensors.items():
            for p, view in zip(params, self._flat.views(tensor)):
                if name in loaded.get(p, {}):
                    view.copy_(loaded[p][name])
        steps = [float(loaded.get(p, {}).get('step', 0.0)) for p in params]
        self._counts = [int(loaded.get(p, {}).get('grad_average_steps', 0)) for p in params]
        self.lockstep = len(set(steps)) == 1 and len(set(self._counts)) == 1
        self._steps = [torch.full_like(self._steps[0], s) for s in (steps[:1] if self.lockstep else steps)]
        self._publish()

    def _publish(self) -> None:
        self._whole_moments = {name: [self._tensors[name]] for name in self._moments}
        cut = {name: self._flat.views(t) for name, t in self._tensors.items()}
        for i, p in enumerate(self._flat.params):
            own: dict = {name: views[i] for name, views in cut.items()}
            own['step'] = self._steps[0 if self.lockstep else i]
            if self._averages:
                own['grad_average_steps'] = self._counts[i]
            self._state[p] = own


class RuledOptimizer(torch.optim.Optimizer):
    """
    Overview:
        Base of Adam and RMSprop beside torch's own: rules before the step, ``minimize``, ``apply``, the gradient norm
        and the flat path. ``param_groups``, ``state`` and ``state_dict`` keep torch's format in both paths, so that a
        checkpoint of one loads into the other.
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
        self._averages: dict[torch.Tensor, torch.Tensor] = {}  # moving averages of g^2, ordinary use
        self._flat_state: FlatState | None = None
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
            Rules and one step on the gradient that is there: ``flat.grad``, or every ``p.grad`` in ordinary use. On
            flat parameters, step hooks are not called here, only in ``step``.
        Returns:
            - norm (:obj:`torch.Tensor | None`): total norm before clipping, 0-dim, if a norm rule is on; None otherwise
        """
        self._opt_called = True  # lr schedulers warn when they step before the optimizer
        if self.flat is None:
            with torch.no_grad():
                self._apply_ordinary()
        else:
            self._apply_flat(self.flat)
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
        self._averages = {p: s['grad_average'] for p, s in self.state.items() if 'grad_average' in s}
        if self.flat is not None:
            loaded = dict(self.state)
            self.state.clear()
            self._flat_state = self._new_flat_state(self.flat) if loaded else None
            if self._flat_state is not None:
                self._flat_state.adopt(loaded)

    def _apply_ordinary(self) -> None:
        if self._rules.active:
            used = [(p, group) for group in self.param_groups for p in group['params'] if p.grad is not None]
            self.grad_norm = self._rule_ordinary(used) if used else None
        super().step()
        for p, average in self._averages.items():
            state = self.state[p]  # written after torch's own entries: torch sets those up only where there is none
            if p.grad is not None:
                state['grad_average'] = average
                state['grad_average_steps'] = state.get('grad_average_steps', 0) + 1

    def _rule_ordinary(self, used: list) -> torch.Tensor | None:
        grads = [p.grad for p, _ in used]
        if not self._rules.needs_momentum:
            return self._rules.apply(grads)
        rates = {self._average_rate(group) for _, group in used}
        if len(rates) > 1:
            raise ValueError(f'the momentum rules need one averaging rate; the parameter groups have {sorted(rates)}')
        for p, _ in used:
            if p not in self._averages:
                self._averages[p] = torch.zeros_like(p)
        steps = [self.state.get(p, {}).get('grad_average_steps', 0) for p, _ in used]
        return self._rules.apply(grads, [self._averages[p] for p, _ in used], steps, rates.pop())

    def _apply_flat(self, flat: FlatParameters) -> None:
        if self._applied % _CHECK_EVERY == 0 or not flat.intact():
            flat.check()
        self._applied += 1
        group, state = self.param_groups[0], self._flat_state
        if state is None:
            state = self._flat_state = self._new_flat_state(flat)
        if flat.unused or not state.lockstep:
            params, grads, moments, averages, steps, counts = state.pieces(flat.unused)
        else:
            params, grads, moments, averages, steps, counts = state.whole()
        if params:
            if self._rules.active:
                self.grad_norm = self._rules.apply(grads, averages, counts, self._average_rate(group))
                state.count(flat.unused)
            self._kernel(params, grads, moments, steps, group)
            flat.touched()

    def _new_flat_state(self, flat: FlatParameters) -> FlatState:
        moments = self._moments(self.param_groups[0])
        return FlatState(flat, self.state, moments, self._rules.needs_momentum, self._step_device(flat))

    def _step_device(self, flat: FlatParameters) -> torch.device:
        return torch.device('cpu')

    def _moments(self, group: dict) -> tuple[str, ...]:
        """Names of the state tensors that have the parameter's shape."""
        raise NotImplementedError

    def _average_rate(self, group: dict) -> float:
        raise NotImplementedError

    def _kernel(self, params: list, grads: list, moments: dict[str, list], steps: list, group: dict) -> None:
        """One optimizer step on lists of tensors; counts ``steps`` up."""
        raise NotImplementedError


def _without_compiler(method: Callable) -> Callable:
    """
    Overview:
        The function of a torch method without the wrapper that keeps torch's compiler out of it: its first call imports
        that compiler, which takes a second at the start of every run.
    """
    function = getattr(method, '__func__', method)
    return getattr(function, '__wrapped__', function)
