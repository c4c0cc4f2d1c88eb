"""Back end 'py' of the traced update: straight Python source, one line per operator."""
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from nervex.torch_utils.graph_trace import Call, Program, Ref, TraceError


def compile_python(program: Program, inputs: Sequence[torch.Tensor]) -> Callable[..., tuple]:
    """
    Overview:
        A function of the program's inputs that returns its outputs as a tuple. It calls torch's own bindings
        directly, which saves the checks of the operator objects (0.3 us a call), and lets go of every value after its
        last use.
    Arguments:
        - inputs (:obj:`Sequence[torch.Tensor]`): examples; the program runs once on them while functions are chosen
    """
    namer = _Namer(program)
    lines = []
    with torch.no_grad():
        functions = choose_functions(program, inputs)
    last_use = _last_uses(program)
    for i, (call, function) in enumerate(zip(program.calls, functions)):
        arguments = [namer.text(a) for a in call.args] + [f'{k}={namer.text(v)}' for k, v in call.kwargs.items()]
        if call.name == 'getitem':
            line = f'{namer.ref(call.result)} = {arguments[0]}[{arguments[1]}]'
        else:
            line = f'{namer.ref(call.result)} = {namer.constant(function)}({", ".join(arguments)})'
        gone = [namer.ref(r) for r in last_use.get(i, [])]
        lines.append(line + (f'; {" = ".join(gone)} = None' if gone else ''))
    lines.append(f'return ({"".join(namer.ref(o) + ", " for o in program.outputs)})')
    head = f'def run({", ".join(namer.ref(r) for r in program.inputs)}):\n'
    source = head + ''.join(f'    {line}\n' for line in lines)
    scope = dict(namer.scope)
    exec(compile(source, '<traced update>', 'exec'), scope)
    run = scope['run']
    run.source = source
    return run


class _Namer:
    """Names of values and constants in the source."""

    def __init__(self, program: Program) -> None:
        self.scope: dict[str, Any] = {}
        self._names: dict[int, str] = {id(ref): f'x{i}' for i, ref in enumerate(program.inputs)}
        self._keep: list[Any] = []

    def ref(self, ref: Ref) -> str:
        """Name of a value."""
        if ref.tensor is not None:
            return self.constant(ref.tensor)
        return self._names.setdefault(id(ref), f'v{len(self._names)}')

    def constant(self, value: Any) -> str:
        """Name of a global that holds any object."""
        if id(value) not in self._names:
            self._keep.append(value)
            self._names[id(value)] = f'c{len(self._names)}'
            self.scope[self._names[id(value)]] = value
        return self._names[id(value)]

    def text(self, item: Any) -> str:
        """An argument as source text."""
        if isinstance(item, Ref):
            return self.ref(item)
        if isinstance(item, (list, tuple)):
            inner = ', '.join(self.text(x) for x in item)
            return f'[{inner}]' if isinstance(item, list) else f'({inner},)'
        plain = item is None or isinstance(item, (bool, int, str)) or (isinstance(item, float) and item == item)
        return repr(item) if plain and item not in (float('inf'), float('-inf')) else self.constant(item)


def choose_functions(program: Program, inputs: Sequence[torch.Tensor]) -> list[Callable]:
    """
    Overview:
        The cheapest callable for every call that accepts its arguments, found by running the program once.
    """
    values: dict[int, Any] = {id(ref): ref.tensor for ref in program.constants}
    values.update({id(ref): x for ref, x in zip(program.inputs, inputs)})
    chosen = []
    for call in program.calls:
        args, kwargs = pytree.tree_map(lambda x: values[id(x)] if isinstance(x, Ref) else x, (call.args, call.kwargs))
        for function in _candidates(call):
            try:
                values[id(call.result)] = function(*args, **kwargs)
            except TypeError:  # this binding takes its arguments in another form; nothing was computed
                continue
            chosen.append(function)
            break
        else:
            raise TraceError(f'no callable takes the arguments of {call.target}')
    return chosen


def _candidates(call: Call) -> list[Callable]:
    if call.name == 'getitem':
        return [operator.getitem]
    homes = (torch._C._VariableFunctions, torch._C._nn, torch.Tensor)
    found = [getattr(home, call.name) for home in homes if hasattr(home, call.name)]
    return [*found, call.target._op, call.target]


def _last_uses(program: Program) -> dict[int, list[Ref]]:
    """Position of a call -> results that nobody needs after it."""
    last: dict[int, tuple[int, Ref]] = {}
    for i, call in enumerate(program.calls):
        for ref in [call.result, *call.refs()]:
            if ref.tensor is None:
                last[id(ref)] = (i, ref)
    stay = {id(r) for r in [*program.outputs, *program.inputs]}
    uses: dict[int, list[Ref]] = {}
    for key, (i, ref) in last.items():
        if key not in stay:
            uses.setdefault(i, []).append(ref)
    return uses
