"""Parameters as views of one flat tensor: optimizer step, norm, clipping and target copy become one operation each."""

import weakref
from collections.abc import Iterable, Iterator
from typing import cast

import torch
from torch import nn

from nervex.utils.errors import TrainingError

Source = nn.Module | nn.Parameter | Iterable[nn.Module | nn.Parameter]

_FLAT_OF: 'weakref.WeakKeyDictionary[nn.Module, FlatParameters]' = weakref.WeakKeyDictionary()
_REMEDY = 'Build the FlatParameters (and its optimizer) again after such a change.'


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

    def __init__(self, source: Source, trainable_only: bool = True) -> None:
        """
        Arguments:
            - source (:obj:`Source`): a module, a parameter, or an iterable of them; tied parameters count once
            - trainable_only (:obj:`bool`): leave out parameters with ``requires_grad=False``. Set it to False for a \
                target network whose gradients are switched off
        """
        items = [source] if isinstance(source, (nn.Module, torch.Tensor)) else list(source)
        named = _collect(items, trainable_only)
        _check_uniform(named)
        self.names = [name for name, _ in named]
        self.params = [p for _, p in named]
        self.unused: tuple[int, ...] = ()
        sizes = [p.numel() for p in self.params]
        self.offsets = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
        with torch.no_grad():
            self.data = torch.cat([p.detach().reshape(-1) for p in self.params])
            self.grad = torch.zeros_like(self.data)
            for p, view in zip(self.params, self.views(self.data)):
                p.data = view
        self._modules = [weakref.ref(m) for m in items if isinstance(m, nn.Module)]
        self._trainable_only = trainable_only
        self._owners = self._find_owners(items)
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
        return [module for module in (ref() for ref in self._modules) if module is not None]

    def __len__(self) -> int:
        return self.offsets[-1]

    def __repr__(self) -> str:
        return f'FlatParameters({len(self.params)} tensors, {len(self)} numbers, {self.data.dtype}, {self.data.device})'

    def views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Cut a tensor of the flat length into views with the shapes of the parameters (moments, gradients, ...)."""
        return [flat[begin : begin + p.numel()].view(p.shape) for begin, p in zip(self.offsets, self.params)]

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
        if not all(p.grad is not None and p.grad.data_ptr() == v.data_ptr() for p, v in zip(self.params, views)):
            self.set_grads([p.grad for p in self.params])
            views = self.views(self.grad)
            for i, (p, view) in enumerate(zip(self.params, views)):
                p.grad = None if i in self.unused else view
        else:
            self.unused = ()
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
            if table is not None and table.get(key) is not p:
                return False
            if p.data_ptr() != pointer:
                return False
            if self._trainable_only and not p.requires_grad:
                return False
        return True

    def check(self) -> None:
        """
        Overview:
            Walk the modules as they are now and raise TrainingError unless their trainable parameters are exactly the
            views of this flat tensor. The text names the first one that is not, what probably happened, and the remedy.
        """
        pointer_of = {id(p): pointer for p, pointer in zip(self.params, self._pointers)}
        present = set()
        for name, p in self._walk():
            if id(p) not in pointer_of:
                if self._trainable_only and not p.requires_grad:
                    continue
                raise TrainingError(
                    f"parameter '{name}' is not part of the flat tensor: it was replaced or added after flattening "
                    f'(load_state_dict(assign=True), m.weight = nn.Parameter(...), a new layer). {_REMEDY}'
                )
            if p.data_ptr() != pointer_of[id(p)]:
                raise TrainingError(
                    f"parameter '{name}' left the flat tensor: its storage was replaced (.double(), .to(device), "
                    f'p.data = ..., or a second FlatParameters over it). {_REMEDY}'
                )
            if self._trainable_only and not p.requires_grad:
                raise TrainingError(
                    f"parameter '{name}' was frozen (requires_grad=False) after flattening and would still be moved by "
                    f'the optimizer. {_REMEDY}'
                )
            present.add(id(p))
        modules = [ref() for ref in self._modules]
        if None in modules:
            return
        for name, p in zip(self.names, self.params):
            if id(p) not in present:
                raise TrainingError(f"parameter '{name}' is in the flat tensor but no longer in the module. {_REMEDY}")
        self._owners = self._find_owners(modules)  # a parametrization moves a parameter to another table

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

    def _walk(self) -> Iterator[tuple[str, nn.Parameter]]:
        for module in self.modules:
            yield from module.named_parameters()
        if not self._modules:
            yield from zip(self.names, self.params)
        else:
            for name, p, (table, _) in zip(self.names, self.params, self._owners):
                if table is None:
                    yield name, p

    def _rest(self) -> list[torch.Tensor]:
        """Tensors of the modules that are not in the flat tensor, in a fixed order."""
        mine = {id(p) for p in self.params}
        rest: list[torch.Tensor] = []
        for module in self.modules:
            rest += [p for p in module.parameters() if id(p) not in mine]
            rest += list(module.buffers())
        return rest

    def _find_owners(self, items: list) -> list[tuple[dict | None, str]]:
        """The ``_parameters`` table and key where each parameter lives (None for a bare parameter)."""
        where: dict[int, tuple[dict | None, str]] = {}
        for module in items:
            if isinstance(module, nn.Module):
                for sub in module.modules():
                    for key, p in sub._parameters.items():
                        if p is not None:
                            where.setdefault(id(p), (sub._parameters, key))
        return [where.get(id(p), (None, '')) for p in self.params]


def flatten(module: nn.Module) -> FlatParameters:
    """
    Overview:
        The module's FlatParameters: the existing one if it is still intact, else a new one.
    """
    return FlatParameters.of(module) or FlatParameters(module)


def _collect(items: list, trainable_only: bool) -> list[tuple[str, nn.Parameter]]:
    named: dict[int, tuple[str, nn.Parameter]] = {}
    for position, item in enumerate(items):
        if isinstance(item, nn.Module):
            found = list(item.named_parameters())
        elif isinstance(item, torch.Tensor):
            if not item.is_leaf:
                raise ValueError(
                    f'item {position} is a tensor of shape {tuple(item.shape)} computed from others; only '
                    'leaves (nn.Parameter) can be optimized'
                )
            found = [(f'parameter {position}', cast(nn.Parameter, item))]
        else:
            raise TypeError(f'item {position} is {type(item).__name__}; FlatParameters takes modules and parameters')
        for name, p in found:
            if p.requires_grad or not trainable_only:
                named.setdefault(id(p), (name, p))
    if not named:
        raise ValueError('there is no trainable parameter to flatten; is requires_grad switched off?')
    return list(named.values())


def _check_uniform(named: list[tuple[str, nn.Parameter]]) -> None:
    kinds: dict[tuple, str] = {}
    for name, p in named:
        kinds.setdefault((p.dtype, p.device), name)
    if len(kinds) > 1:
        listed = ', '.join(f"'{name}' is {dtype} on {device}" for (dtype, device), name in kinds.items())
        raise ValueError(
            f'one flat tensor has one dtype and one device, but {listed}; build one FlatParameters (and '
            'one optimizer) for each kind, or convert the module first'
        )
