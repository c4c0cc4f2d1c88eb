"""What a trace must leave as it was, and what must still be true when the recorded program runs again."""

from collections.abc import Iterable
from types import TracebackType
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from nervex.graph.trace import Program, TraceError


class ModuleWatch:
    """
    Overview:
        Notes every module that is called inside the block, with its attributes and buffers before its first call.
    Interfaces:
        restore, states
    """

    def __init__(self, modules: Iterable[nn.Module] = ()) -> None:
        self.modules: dict[int, nn.Module] = {}
        self._attributes: dict[int, dict[str, Any]] = {}
        self._buffers: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        for module in modules:
            self._see(module)

    def __enter__(self) -> 'ModuleWatch':
        hook = nn.modules.module.register_module_forward_pre_hook
        self._handle = hook(lambda module, _: self._see(module))
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._handle.remove()

    def restore(self) -> str | None:
        """
        Overview:
            Give buffers and attributes the values from before the block.
        Returns:
            - reason (:obj:`str | None`): what a module had set in its forward, which a recorded program would not do
        """
        reason = None
        for module in self.modules.values():
            for buffer, before in self._buffers[id(module)]:
                buffer.data.copy_(before)
            before_all = self._attributes[id(module)]
            for name, now in _attributes(module).items():
                before = before_all.get(name)
                if name not in before_all or not (now is before or (type(now) in (int, float, bool) and now == before)):
                    reason = reason or f"{type(module).__name__} sets its attribute '{name}' in forward"
                    _set_back(module, name, before_all)
        return reason

    def states(self) -> list[tuple[nn.Module, bool]]:
        """All modules seen, their children included, with their training flags."""
        return [(m, m.training) for m in self.modules.values()]

    def _see(self, module: nn.Module) -> None:
        if id(module) in self.modules:
            return
        for sub in module.modules():
            if id(sub) not in self.modules:
                self.modules[id(sub)] = sub
                self._attributes[id(sub)] = _attributes(sub)
                tensors = [b for b in sub._buffers.values() if b is not None]
                self._buffers[id(sub)] = [(b, b.detach().clone()) for b in tensors]


def _attributes(module: nn.Module) -> dict[str, Any]:
    plain = {k: v for k, v in vars(module).items() if k not in ('_parameters', '_buffers', '_modules')}
    return {**plain, **{f'buffer {k}': v for k, v in module._buffers.items()}}


def _set_back(module: nn.Module, name: str, before: dict[str, Any]) -> None:
    table, key = (module._buffers, name[len('buffer ') :]) if name.startswith('buffer ') else (vars(module), name)
    if name in before:
        table[key] = before[name]
    else:
        table.pop(key, None)


class GeneratorWatch(TorchFunctionMode):
    """
    Overview:
        Inside the block, notes generators that are given to torch functions, with their state before the first use.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, tuple[torch.Generator, torch.Tensor]] = {}

    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        generator = (kwargs or {}).get('generator')
        if isinstance(generator, torch.Generator) and id(generator) not in self._seen:
            self._seen[id(generator)] = (generator, generator.get_state())
        return function(*args, **(kwargs or {}))

    def restore(self) -> None:
        """Give them their states back."""
        for generator, state in reversed(self._seen.values()):  # one generator may be seen as several objects
            generator.set_state(state)


class RandomState:
    """
    Overview:
        The states of torch's generators that a function may draw from.
    """

    def __init__(self, device: torch.device, generators: Iterable[torch.Generator] = ()) -> None:
        self._device = device
        self._cpu = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state(device) if device.type == 'cuda' else None
        self._own = [(g, g.get_state()) for g in generators]

    def restore(self) -> None:
        """Go back to them."""
        torch.set_rng_state(self._cpu)
        if self._cuda is not None:
            torch.cuda.set_rng_state(self._cuda, self._device)
        for generator, state in self._own:
            generator.set_state(state)


class Guard:
    """
    Overview:
        True while the modules of a program are in the mode they were recorded in, and its constants are still their
        parameters and buffers.
    """

    def __init__(self, program: Program, watch: ModuleWatch) -> None:
        self._states = watch.states()
        storages = {ref.tensor.untyped_storage().data_ptr() for ref in program.constants if not ref.fixed}
        self._places = []
        self.buffers: list[torch.Tensor] = []
        for module in watch.modules.values():
            for table in (module._parameters, module._buffers):
                for key, tensor in table.items():
                    if tensor is not None and tensor.untyped_storage().data_ptr() in storages:
                        self._places.append((table, key, tensor, tensor.data_ptr()))
            self.buffers += [b for b in module._buffers.values() if b is not None]
        self._refuse_foreign_writes(program)

    def holds(self) -> bool:
        """Whether the program may run."""
        for module, training in self._states:
            if module.training is not training:
                return False
        for table, key, tensor, pointer in self._places:
            if table.get(key) is not tensor or tensor.data_ptr() != pointer:
                return False
        return True

    def _refuse_foreign_writes(self, program: Program) -> None:
        own = {b.untyped_storage().data_ptr() for b in self.buffers}
        for call in program.calls:
            for ref in call.written():
                if ref.tensor is not None and ref.tensor.untyped_storage().data_ptr() not in own:
                    raise TraceError(f'it writes into a tensor that is no buffer of a module ({call.name})')
