"""Parameters as views of one flat tensor: optimizer step, norm, clipping and target copy become one operation each."""

import weakref
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import torch
from torch import nn

from nervex.utils.errors import TrainingError

Source = nn.Module | nn.Parameter | Iterable[nn.Module | nn.Parameter]

_FLAT_OF: 'weakref.WeakKeyDictionary[nn.Module, FlatParameters]' = weakref.WeakKeyDictionary()
_REMEDY = 'Build the FlatParameters (and its optimizer) again after such a change.'
_FOREIGN = (
    'is not part of the flat tensor: it was replaced or added after flattening (load_state_dict(assign=True), '
    'm.weight = nn.Parameter(...), a new layer)'
)
_MOVED = (
    'left the flat tensor: its storage was replaced (.double(), .to(device), p.data = ..., or a second FlatParameters '
    'over it)'
)
_FROZEN = 'was frozen (requires_grad=False) after flattening and would still be moved by the optimizer'


class FlatParameters:
    """
    Overview:
        Makes all trainable parameters of one or several modules views of one flat tensor. Gradients come from
        ``autograd.grad`` and are joined into ``grad``, so that nothing depends on ``p.grad`` (which ``zero_grad``,
        ``create_graph`` and others replace). One flat tensor has one dtype, one device and one optimizer. It is no
        part of the module: deepcopy, ``state_dict`` and pickle see ordinary parameters.
    Interfaces:
        gradient, gather_grads, check, intact, copy_from, views, of
    Attributes:
        - data (:obj:`torch.Tensor`): the flat parameters, no graph of its own
        - grad (:obj:`torch.Tensor`): the flat gradient, of the same length
        - params (:obj:`list[nn.Parameter]`): the parameters in flat order
        - unused (:obj:`tuple[int, ...]`): positions in ``params`` that the last gradient did not reach
    """

    def __init__(self, source: Source) -> None:
        """
        Arguments:
            - source (:obj:`Source`): a module, a parameter, or an iterable of them; tied parameters count once, and \
                those with ``requires_grad=False`` are left out
        """
        items = [source] if isinstance(source, (nn.Module, torch.Tensor)) else list(source)
        self._bare = nn.Module()  # has the parameters that were given without a module
        self._bare._parameters.update(_bare_parameters(items))
        self._modules = [weakref.ref(m) for m in [*items, self._bare] if isinstance(m, nn.Module)]
        named: dict[int, tuple[str, nn.Parameter]] = {}
        for name, p in self._walk():
            if p.requires_grad:
                named.setdefault(id(p), (name, p))
        _check_uniform(list(named.values()))
        self.params = [p for _, p in named.values()]
        self._mine = {id(p) for p in self.params}
        self.unused: tuple[int, ...] = ()
        self._ends = list(accumulate(p.numel() for p in self.params))
        with torch.no_grad():
            self.data = torch.cat([p.detach().reshape(-1) for p in self.params])
            self.grad = torch.zeros_like(self.data)
            for p, view in zip(self.params, self.views(self.data)):
                p.data = view
        self._owners = self._find_owners()
        self._pointers = [p.data_ptr() for p in self.params]
        if len(items) == 1 and isinstance(items[0], nn.Module):
            _FLAT_OF[items[0]] = self

    @classmethod
    def of(cls, module: nn.Module) -> 'FlatParameters | None':
        """
        Overview:
            The FlatParameters that was built on exactly this module; None if there is none, or if the module has been
            changed since, so that it may safely be used for a fast copy.
        """
        flat = _FLAT_OF.get(module)
        return flat if flat is not None and flat.intact() else None

    @property
    def modules(self) -> list[nn.Module]:
        """The modules that it was made of and that still exist."""
        found = [ref() for ref in self._modules]
        return [module for module in found if module is not None]

    def __len__(self) -> int:
        return self._ends[-1]

    def __repr__(self) -> str:
        return f'FlatParameters({len(self.params)} tensors, {len(self)} numbers, {self.data.dtype}, {self.data.device})'

    def views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Cut a tensor of the flat length into views with the shapes of the parameters (moments, gradients, ...)."""
        return [flat[end - p.numel() : end].view(p.shape) for end, p in zip(self._ends, self.params)]

    def gradient(self, loss: torch.Tensor, retain_graph: bool = False) -> torch.Tensor:
        """
        Overview:
            Gradient of a loss with respect to all parameters, left in ``self.grad``. A parameter that the loss does not
            reach gets zeros and is listed in ``self.unused``, so that an optimizer can skip it as torch does.
        """
        return self.set_grads(torch.autograd.grad(loss, self.params, retain_graph=retain_graph, allow_unused=True))

    def gather_grads(self) -> torch.Tensor:
        """
        Overview:
            Join the gradients that ``loss.backward()`` left in ``p.grad`` into ``self.grad``, and let ``p.grad`` be
            views of it from now on, so that clipping is seen there too.
        """
        views = self.views(self.grad)
        if all(p.grad is not None and p.grad.data_ptr() == v.data_ptr() for p, v in zip(self.params, views)):
            self.unused = ()
            return self.grad
        self.set_grads([p.grad for p in self.params])
        for i, (p, view) in enumerate(zip(self.params, self.views(self.grad))):
            p.grad = None if i in self.unused else view
        return self.grad

    def set_grads(self, grads: Iterable[torch.Tensor | None]) -> torch.Tensor:
        """Join one gradient per parameter (None: zeros) into a new ``self.grad``."""
        grads = list(grads)
        self.unused = tuple(i for i, g in enumerate(grads) if g is None)
        whole = [torch.zeros_like(p) if g is None else g for g, p in zip(grads, self.params)]
        self.grad = torch.cat([g.reshape(-1) for g in whole])
        return self.grad

    def intact(self) -> bool:
        """Whether every parameter is still the one that was made flat: a cheap test for every step."""
        for (table, key), p, pointer in zip(self._owners, self.params, self._pointers):
            if table.get(key) is not p or p.data_ptr() != pointer or not p.requires_grad:
                return False
        return True

    def check(self) -> None:
        """
        Overview:
            Walk the modules as they are now and raise TrainingError unless their trainable parameters are exactly the
            views of this flat tensor. The text names the first one that is not, what probably happened, and the remedy.
        """
        missing = dict(zip(map(id, self.params), self._pointers))
        known = dict(missing)
        for name, p in self._walk():
            missing.pop(id(p), None)
            wrong = None
            if id(p) not in known:
                wrong = _FOREIGN if p.requires_grad else None
            elif p.data_ptr() != known[id(p)]:
                wrong = _MOVED
            elif not p.requires_grad:
                wrong = _FROZEN
            if wrong:
                raise TrainingError(f"parameter '{name}' {wrong}. {_REMEDY}")
        if len(self.modules) < len(self._modules):
            return
        if missing:
            shapes = [tuple(p.shape) for p in self.params if id(p) in missing]
            raise TrainingError(f'parameters {shapes} are in the flat tensor but no longer in the module. {_REMEDY}')
        self._owners = self._find_owners()  # a parametrization moves a parameter to another table

    def touched(self) -> None:
        """
        Overview:
            Tell autograd that the parameters changed in place. A write through the flat tensor is invisible to the
            version counters of its views: without this, a backward through old activations is wrong in silence.
        """
        torch.autograd.graph.increment_version(self.params)

    @torch.no_grad()
    def copy_from(self, source: 'FlatParameters', theta: float = 1.0) -> None:
        """
        Overview:
            ``self <- (1 - theta) * self + theta * source`` in one operation. What is not in the flat tensors (buffers
            such as BatchNorm statistics, frozen parameters) is copied as it is.
        """
        if [p.shape for p in self.params] != [p.shape for p in source.params]:
            raise ValueError(
                f'cannot copy {source!r} into {self!r}: their parameters have different shapes; '
                'make the target by copy.deepcopy of the source module'
            )
        if theta == 1.0:
            self.data.copy_(source.data)
        else:
            self.data.lerp_(source.data, theta)
        for mine, theirs in zip(self._rest(), source._rest()):
            mine.copy_(theirs)
        self.touched()

    def _walk(self) -> list[tuple[str, nn.Parameter]]:
        return [named for module in self.modules for named in module.named_parameters()]

    def _rest(self) -> list[torch.Tensor]:
        """
        Overview:
            Tensors of the modules that are not in the flat tensor, in a fixed order. Before every copy into a target,
            so by the tables themselves: ``parameters()`` and ``buffers()`` take 1 % of an update of TD3.
        """
        rest: list[torch.Tensor] = []
        left = self.modules
        while left:
            sub = left.pop()
            left += [part for part in sub._modules.values() if part is not None]
            for table in (sub._parameters, sub._buffers):
                rest += [t for t in table.values() if t is not None and id(t) not in self._mine] if table else ()
        return rest

    def _find_owners(self) -> list[tuple[dict, str]]:
        """The ``_parameters`` table and key where each parameter lives."""
        tables = [sub._parameters for module in self.modules for sub in module.modules()]
        where = {id(p): (table, key) for table in reversed(tables) for key, p in table.items() if p is not None}
        return [where[id(p)] for p in self.params]


def _bare_parameters(items: list) -> dict[str, nn.Parameter]:
    found: dict[str, Any] = {}
    for position, item in enumerate(items):
        if isinstance(item, nn.Module):
            continue
        if not isinstance(item, torch.Tensor):
            raise TypeError(f'item {position} is {type(item).__name__}; FlatParameters takes modules and parameters')
        if not item.is_leaf:
            raise ValueError(
                f'item {position} is a tensor of shape {tuple(item.shape)} computed from others; only '
                'leaves (nn.Parameter) can be optimized'
            )
        found[f'parameter {position}'] = item
    return found


def _check_uniform(named: list[tuple[str, nn.Parameter]]) -> None:
    if not named:
        raise ValueError('there is no trainable parameter to flatten; is requires_grad switched off?')
    kinds = {(p.dtype, p.device): name for name, p in reversed(named)}
    if len(kinds) > 1:
        listed = ', '.join(f"'{name}' is {dtype} on {device}" for (dtype, device), name in reversed(kinds.items()))
        raise ValueError(
            f'one flat tensor has one dtype and one device, but {listed}; build one FlatParameters (and '
            'one optimizer) for each kind, or convert the module first'
        )
