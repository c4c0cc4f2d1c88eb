"""What recording must leave as it was, and what must still be true when the program runs again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import torch
from torch import nn

from nervex.graph.forms import Source
from nervex.graph.program import Program, TraceError


class Untouched:
    """
    Overview:
        Inside the block, notes every module that is called and every generator that ``saw`` is told of; at its end they
        and torch's own generators are as they were before. A module whose ``forward`` sets an attribute ends in a
        TraceError: a recorded program would not do that.
    Arguments:
        - modules (:obj:`Iterable[nn.Module]`): modules that are noted though nobody calls them
        - device (:obj:`torch.device`): where random numbers are drawn
    """

    def __init__(self, modules: Iterable[nn.Module], device: torch.device) -> None:
        self.modules: dict[int, nn.Module] = {}
        self._attributes: dict[int, dict[str, Any]] = {}
        self._buffers: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._generators: list[tuple[torch.Generator, torch.Tensor]] = []
        self._device = device
        for module in modules:
            self._see(module)

    def __enter__(self) -> Untouched:
        self._random = random_state(self._device)
        hook = nn.modules.module.register_module_forward_pre_hook
        self._handle = hook(lambda module, _: self._see(module))
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._handle.remove()
        self._random()
        for generator, state in reversed(self._generators):  # one generator may be seen as several objects
            generator.set_state(state)
        for buffer, before in self._buffers:
            buffer.data.copy_(before)
        reasons = [reason for module in self.modules.values() for reason in self._set_back(module)]
        if reasons and error is None:
            raise TraceError(reasons[0])

    def saw(self, generator: torch.Generator) -> None:
        """Note the state of a generator before it is drawn from."""
        self._generators.append((generator, generator.get_state()))

    def _see(self, module: nn.Module) -> None:
        for sub in module.modules() if id(module) not in self.modules else ():
            if id(sub) not in self.modules:
                self.modules[id(sub)] = sub
                self._attributes[id(sub)] = _attributes(sub)
                self._buffers += [(b, b.detach().clone()) for b in sub._buffers.values() if b is not None]

    def _set_back(self, module: nn.Module) -> Iterable[str]:
        before = self._attributes[id(module)]
        for name, now in _attributes(module).items():
            old = before.get(name)
            if name in before and (now is old or (type(now) in (int, float, bool) and now == old)):
                continue
            table, key = (module._buffers, name[7:]) if name.startswith('buffer ') else (vars(module), name)
            if name in before:
                table[key] = old
            else:
                table.pop(key, None)
            yield f"{type(module).__name__} sets its attribute '{name}' in forward"


def _attributes(module: nn.Module) -> dict[str, Any]:
    plain = {k: v for k, v in vars(module).items() if k not in ('_parameters', '_buffers', '_modules')}
    return {**plain, **{f'buffer {k}': v for k, v in module._buffers.items()}}


def random_state(device: torch.device, generators: Iterable[torch.Generator] = ()) -> Callable[[], None]:
    """
    Overview:
        A function that puts torch's generators for a device, and these, back to where they are now.
    """
    cpu, cuda = torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == 'cuda' else None
    own = [(generator, generator.get_state()) for generator in generators]

    def restore() -> None:
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda, device)
        for generator, state in own:
            generator.set_state(state)

    return restore


class Guard:
    """
    Overview:
        ``holds()`` is True while all modules of a program are in the mode in which it was recorded, and its constants
        are still their parameters and buffers. It runs at every call, so it is made as one expression.
    """

    def __init__(self, program: Program, modules: Iterable[nn.Module]) -> None:
        self._modules = list(modules)
        self._storages = {ref.example.untyped_storage().data_ptr() for ref in program.constants if not ref.fixed}
        self.buffers = [b for module in self._modules for b in module._buffers.values() if b is not None]
        _refuse_foreign_writes(program, self.buffers)
        source = Source([])
        source.require(self.fact(source), False)
        self.holds: Callable[[], bool] = source.finish('True', '<guard>')

    def fact(self, source: Source) -> str:
        """What must be true, as text of an expression; a KeyError says no, too."""
        facts = [f'{source.constant(module)}.training is {module.training}' for module in self._modules]
        for module in self._modules:
            for table in (module._parameters, module._buffers):
                for key, tensor in table.items():
                    if tensor is not None and tensor.untyped_storage().data_ptr() in self._storages:
                        facts.append(f'{source.constant(table)}[{key!r}] is {source.constant(tensor)}')
                        facts.append(f'{source.constant(tensor.data_ptr)}() == {tensor.data_ptr()}')
        return ' and '.join(facts) or 'True'


def _refuse_foreign_writes(program: Program, buffers: list[torch.Tensor]) -> None:
    own = {b.untyped_storage().data_ptr() for b in buffers}
    for call in program.calls:
        for ref in call.written():
            if ref.tensor is not None and ref.tensor.untyped_storage().data_ptr() not in own:
                raise TraceError(f'it writes into a tensor that is no buffer of a module ({call.name})')
