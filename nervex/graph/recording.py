"""Recording a function, what must hold when its program runs, and comparing both."""

from collections.abc import Callable, Iterable, Sequence
from threading import current_thread, get_ident
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import nn

from nervex.graph.program import Program, TraceError, trace
from nervex.utils import tree


class Source:
    """
    Overview:
        Lines of Python source, made a function by ``exec``: a loop over the operators of a network costs 0.3 us each,
        which is half of what acting for one env takes (row 'act, 1 env' of benchmark/train_bench.py).
    Arguments:
        - inputs (:obj:`Sequence`): objects that the function is given at each call, by identity
    Interfaces:
        name, constant, line, lines, finish
    """

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._scope: dict[str, Any] = {}
        self._inputs = [f'x{i}' for i in range(len(inputs))]
        self._names = {id(item): name for item, name in zip(inputs, self._inputs)}
        self.lines: list[str] = []

    def name(self, value: Any) -> str:
        """Name of an input."""
        return self._names[id(value)]

    def constant(self, value: Any) -> str:
        """Name of a global that holds any object."""
        if id(value) not in self._names:
            self._names[id(value)] = f'c{len(self._names)}'
            self._scope[self._names[id(value)]] = value  # which also keeps it, so that its id stays its own
        return self._names[id(value)]

    def line(self, text: str) -> None:
        """One more line."""
        self.lines.append(text)

    def finish(self, result: str, title: str) -> Any:
        """The function, with the text of its result; ``run.source`` is its text."""
        lines = ''.join(f'    {line}\n' for line in [*self.lines, f'return {result}'])
        source = f'def run({", ".join(self._inputs)}):\n{lines}'
        exec(compile(source, title, 'exec'), self._scope)
        run = self._scope['run']
        run.source = source
        return run


Run = Callable[..., Any]  # takes the inputs of a program, returns its outputs
_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 1e-2}


class Plan:
    """
    Overview:
        A program that was made to run. ``inputs_from(data)`` gives its inputs, or None where the data is of another
        kind, a module is in another mode, or a weight is another tensor, or at another place, than when it was
        recorded; or in another thread, for it works in memory of its own. It runs at every call, so it is made as one
        expression.
    """

    def __init__(self, run: Run, program: Program, modules: Sequence[nn.Module], data: Any) -> None:
        self.run, self.generators = run, program.generators
        self.buffers = [b for module in modules for b in module._buffers.values() if b is not None]
        self.calls, self.next_check = 0, 1
        source, inputs = Source([data]), list[str]()
        facts = [f'{source.constant(get_ident)}() == {get_ident()}']
        _describe(source, data, source.name(data), facts, inputs)
        _describe_modules(source, program, modules, facts)
        source.line('try:')
        source.line(f'    if not ({" and ".join(facts)}): return None')
        source.line('except KeyError: return None')
        self.inputs_from: Callable[[Any], tuple | None] = source.finish(f'({"".join(inputs)})', '<guard>')


def _describe(source: Source, item: Any, text: str, facts: list[str], inputs: list[str]) -> None:
    """
    Overview:
        Facts about data, as expressions, and the names of what is no container. Strides count, because sums are taken
        in the order of the memory.
    """
    parts, name, kind = tree.children(item), f'v{len(facts)}', source.constant(type(item))
    facts.append(f'type({name} := {text}) is {kind}')
    if parts is not None:
        inside = name if type(item) is dict else f'{name} := {source.constant(tree.children)}({name})'
        facts.append(f'len({inside}) == {len(parts)}')
        for key, part in parts.items():
            _describe(source, part, f'{name}[{source.constant(key)}]', facts, inputs)
    elif item is not None:
        details = {'shape': item.shape, 'dtype': item.dtype}
        if isinstance(item, torch.Tensor):  # by the cheaper question where there are two
            details |= {'is_contiguous()': True} if item.is_contiguous() else {'stride()': item.stride()}
            details |= {'is_cpu': True} if item.is_cpu else {'device': item.device}
        facts.extend(f'{name}.{attribute} == {source.constant(value)}' for attribute, value in details.items())
        inputs.append(f'{name}, ')


def _describe_modules(source: Source, program: Program, modules: Iterable[nn.Module], facts: list[str]) -> None:
    """Facts about the modules of a program: their modes, and that its constants are still their weights."""
    storages = {ref.example.untyped_storage().data_ptr() for ref in program.constants if not ref.fixed}
    for module in modules:
        facts.append(f'{source.constant(module)}.training is {module.training}')
        for table in (module._parameters, module._buffers):
            for key, tensor in table.items():
                if tensor is not None and tensor.untyped_storage().data_ptr() in storages:
                    facts.append(f'{source.constant(table)}[{key!r}] is {source.constant(tensor)}')
                    facts.append(f'{source.constant(tensor.data_ptr)}() == {tensor.data_ptr()}')


def record(
    step: Callable, data: Any, modules: list[nn.Module], device: torch.device, compiled: Callable[[Program], Run]
) -> Plan:
    """``step(data) -> tensors`` as a plan; ``modules`` are those that count though nobody calls them."""
    inputs = [_copied(x) for x in tree.leaves(data) if x is not None]

    def function(*tensors: torch.Tensor) -> list[torch.Tensor]:
        given = iter(tensors)
        return step(tree.map(lambda x: None if x is None else next(given), data))

    with _Untouched(modules, device) as watch:
        program = trace(function, inputs, watch.saw)
        watch.refuse_foreign_writes(program)
        with torch.no_grad():
            run = compiled(program)
    return Plan(run, program, list(watch.modules), data)


def compare(
    plan: Plan, eager: Callable[[], dict], recorded: Callable[[], dict], device: torch.device, rounding: float
) -> str | None:
    """
    Overview:
        Run both ways from the same random state and buffers, and compare their results, tensors by name. The first
        that differs, if one does: then all is left as the eager way leaves it.
    """
    plan.next_check = 2 if plan.calls == 1 else max(64, plan.calls * 4)
    before = _kept(device, plan.generators, plan.buffers)
    expected = eager() | {f'buffer {i}': buffer.clone() for i, buffer in enumerate(plan.buffers)}
    after = _kept(device, plan.generators, plan.buffers)
    before()
    found = recorded() | {f'buffer {i}': buffer for i, buffer in enumerate(plan.buffers)}
    wrong = [name for name, value in expected.items() if not _close(value, found[name], rounding)]
    if wrong:
        after()
    return wrong[0] if wrong else None


class _Untouched:
    """
    Overview:
        Inside the block, notes every module that is called and every generator that ``saw`` is told of; at its end they
        and torch's own generators are as they were before. A module whose ``forward`` sets an attribute ends in a
        TraceError: a recorded program would not do that.
    """

    def __init__(self, modules: Iterable[nn.Module], device: torch.device) -> None:
        self.modules: dict[nn.Module, dict[str, Any]] = {}  # with their attributes as they were
        self._undo = [_kept(device)]
        for module in modules:
            self._see(module)

    def __enter__(self) -> '_Untouched':
        hook = nn.modules.module.register_module_forward_pre_hook
        own = get_ident()  # what other threads call meanwhile is no part of it
        self._handle = hook(lambda module, _: self._see(module) if get_ident() == own else None)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._handle.remove()
        for undo in reversed(self._undo):  # one generator may be seen as several objects
            undo()
        reasons = [self._set_back(module, before) for module, before in self.modules.items()]
        if any(reasons) and error is None:
            raise TraceError(next(filter(None, reasons)))

    def saw(self, generator: torch.Generator) -> None:
        """Note the state of a generator before it is drawn from."""
        self._undo.append(_kept(None, [generator]))

    def refuse_foreign_writes(self, program: Program) -> None:
        """Only buffers of modules may be written into: they alone are put back."""
        own = {b.untyped_storage().data_ptr() for m in self.modules for b in m._buffers.values() if b is not None}
        for call in program.calls:
            for ref in call.written():
                if ref.tensor is not None and ref.tensor.untyped_storage().data_ptr() not in own:
                    raise TraceError(f'it writes into a tensor that is no buffer of a module ({call.name})')

    def _see(self, module: nn.Module) -> None:
        for sub in module.modules() if module not in self.modules else ():
            if sub not in self.modules:
                self.modules[sub] = _attributes(sub)
                self._undo.append(_kept(None, (), [b for b in sub._buffers.values() if b is not None]))

    @staticmethod
    def _set_back(module: nn.Module, before: dict[str, Any]) -> str | None:
        """Attributes as they were; the text says which ``forward`` has set."""
        reason = None
        for name, now in _attributes(module).items():
            old = before.get(name)
            if name not in before or not (now is old or (type(now) in (int, float, bool) and now == old)):
                reason = f"{type(module).__name__} sets its attribute '{name}' in forward"
                table, key = (module._buffers, name[7:]) if name.startswith('buffer ') else (vars(module), name)
                table.pop(key)
                if name in before:
                    table[key] = old
        return reason


def _attributes(module: nn.Module) -> dict[str, Any]:
    plain = {k: v for k, v in vars(module).items() if k not in ('_parameters', '_buffers', '_modules')}
    return {**plain, **{f'buffer {k}': v for k, v in module._buffers.items()}}


def _kept(
    device: torch.device | None, generators: Sequence[torch.Generator] = (), buffers: Sequence[torch.Tensor] = ()
) -> Callable[[], None]:
    """A function that puts torch's generators for a device, these generators and buffers back to where they are now."""
    owned = device is not None and getattr(current_thread(), 'global_chance', True)  # else another thread draws from it
    cpu = torch.get_rng_state() if owned else None
    cuda = [(d, torch.cuda.get_rng_state(d)) for d in [device] if d is not None and d.type == 'cuda']
    states = [generator.get_state() for generator in generators]
    values = [buffer.detach().clone() for buffer in buffers]

    def put_back() -> None:
        if cpu is not None:
            torch.set_rng_state(cpu)
        for gpu, state in cuda:
            torch.cuda.set_rng_state(state, gpu)
        for generator, state in zip(generators, states):
            generator.set_state(state)
        for buffer, value in zip(buffers, values):
            buffer.data.copy_(value)

    return put_back


def _copied(x: Any) -> torch.Tensor:
    """A tensor with the same numbers in the same layout; NumPy's arrays are put in order."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(np.array(x, order='C'))
    if x.layout is not torch.strided or not x.numel():
        return x.detach().clone()
    length = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride()))
    return x.detach().as_strided((length,), (1,)).clone().as_strided(x.shape, x.stride())


def largest(x: torch.Tensor) -> float:
    """The largest finite number of a tensor, without its sign."""
    return x.nan_to_num(0.0, 0.0, 0.0).abs().max().item() if x.numel() and x.is_floating_point() else 0.0


def _close(a: torch.Tensor, b: torch.Tensor, rounding: float) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    tolerance = _TOLERANCE.get(a.dtype, 1e-4)
    return torch.allclose(a, b, tolerance, tolerance * max(largest(a), 1e-6) + rounding, equal_nan=True)
