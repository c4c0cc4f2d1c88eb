"""Back end 'ts' of the traced update: TorchScript's interpreter, which runs in C++ without the interpreter lock."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from nervex.graph.inplace import write_gradient_in_place
from nervex.graph.trace import Call, Program, Ref, TraceError


def compile_script(program: Program, inputs: Sequence[torch.Tensor]) -> Callable[..., tuple]:
    """
    Overview:
        Write the program as TorchScript's textual form and let its interpreter run it. Weights are inputs, never
        constants of the text: constants were seen to go stale. Rests on private functions of torch; whatever they
        refuse becomes a TraceError, and the caller takes another back end.
    """
    try:
        with torch.no_grad():
            program = write_gradient_in_place(program, program.run(inputs))
        text, constants = write_script(program)
        graph = torch._C.parse_ir(text)
        torch._C._jit_pass_lint(graph)
        function = torch._C._create_function_from_graph('traced_update', graph)
        run = _runner(function, constants)
        with torch.no_grad():
            run(*inputs)
    except (RuntimeError, AttributeError, TypeError) as e:
        raise TraceError(f'TorchScript refuses the program: {str(e).strip().splitlines()[0]}') from e
    run.source = text
    return run


def _runner(function: Any, constants: list[Any]) -> Callable[..., tuple]:
    """
    Overview:
        The function without the interpreter's own optimizer: it finds nothing to do in bare operator calls, takes 25 ms
        for that, and what it leaves is a little slower.
    """
    optimized, optimize = torch._C._get_graph_executor_optimize, torch._C._set_graph_executor_optimize

    def run(*columns: torch.Tensor) -> tuple:
        before = optimized()
        optimize(False)
        try:
            return function(*columns, *constants)
        finally:
            optimize(before)

    return run


def write_script(program: Program) -> tuple[str, list[Any]]:
    """
    Overview:
        The program as text, and what it takes after its inputs: constant tensors, then generators.
    """
    writer = _Writer(program)
    for call in program.calls:
        writer.call(call)
    return writer.finish(program.outputs)


class _Writer:
    def __init__(self, program: Program) -> None:
        self._names: dict[int, str] = {}
        self._lines: list[str] = []
        self._parts: dict[tuple[int, int], str] = {}  # results of calls that return several
        self._literals: dict[tuple[str, str], str] = {}
        self._count = 0
        self._constants = program.constants
        self._inputs = [f'{self._new(ref)} : Tensor' for ref in [*program.inputs, *self._constants]]
        self._generators = {id(generator): self._fresh() for generator in program.generators}
        self._inputs += [f'{name} : Generator' for name in self._generators.values()]
        self._given = [*(ref.tensor for ref in self._constants), *program.generators]

    def call(self, call: Call) -> None:
        """One operator call as one line, preceded by its literals."""
        if call.name == 'getitem':
            source, index = call.args
            if (id(source), index) in self._parts:
                self._names[id(call.result)] = self._parts[id(source), index]
            else:
                place = self._value(index, 'int')
                self._line(call.result, 'Tensor', f'aten::__getitem__({self._names[id(source)]}, {place})')
            return
        schema = call.target._schema
        given = dict(zip((a.name for a in schema.arguments), call.args)) | call.kwargs
        values = []
        for argument in schema.arguments:
            value = given.get(argument.name, argument.default_value)
            values.append(self._value(value, str(argument.type)))
        right = f'{schema.name}({", ".join(values)})'
        kinds = [str(r.type).replace('List[Tensor]', 'Tensor[]') for r in schema.returns]
        if len(kinds) == 1:
            self._line(call.result, kinds[0], right)
        else:
            names = [self._fresh() for _ in kinds]
            self._parts.update({(id(call.result), i): name for i, name in enumerate(names)})
            left = ', '.join(f'{name} : {kind}' for name, kind in zip(names, kinds))
            self._lines.append(f'{left} = {right}')

    def finish(self, outputs: list[Ref]) -> tuple[str, list[torch.Tensor]]:
        """The whole text."""
        names = [self._names[id(o)] for o in outputs]
        kind = f'({", ".join(["Tensor"] * len(names))})'
        self._lines.append(f'%result : {kind} = prim::TupleConstruct({", ".join(names)})')
        head = ', '.join(self._inputs)
        body = '\n'.join(f'  {line}' for line in self._lines)
        return f'graph({head}):\n{body}\n  return (%result)\n', self._given

    def _line(self, result: Ref, kind: str, right: str) -> None:
        self._lines.append(f'{self._new(result)} : {kind} = {right}')

    def _new(self, ref: Ref) -> str:
        return self._names.setdefault(id(ref), self._fresh())

    def _fresh(self) -> str:
        self._count += 1
        return f'%v{self._count}'

    def _value(self, item: Any, kind: str) -> str:
        """An argument: the name of a value, or of a literal that is written first."""
        if isinstance(item, Ref):
            return self._names[id(item)]
        if isinstance(item, (list, tuple)):
            return self._list(item, kind)
        if isinstance(item, torch.Generator):
            return self._generators[id(item)]
        if isinstance(item, float) and math.isinf(item):
            return self._infinity(item)
        return self._literal(*_literal_text(item, kind))

    def _infinity(self, item: float) -> str:
        """No literal has this value: it is a product of two that are large."""
        key = ('float', str(item))
        if key not in self._literals:
            large = (self._literal(*_literal_text(x, 'float')) for x in (1e300, math.copysign(1e300, item)))
            self._literals[key] = name = self._fresh()
            self._lines.append(f'{name} : float = aten::mul({", ".join(large)})')
        return self._literals[key]

    def _list(self, items: Sequence[Any], kind: str) -> str:
        inner = 'Optional[Tensor]' if 'Optional[Tensor]' in kind else 'Tensor' if 'Tensor' in kind else kind
        inner = 'float' if 'float' in kind else inner
        names = [self._value(x, inner) for x in items]
        listed = {'Tensor': 'Tensor[]', 'Optional[Tensor]': 'Tensor?[]', 'float': 'float[]'}.get(inner)
        if listed is None:
            listed = 'bool[]' if items and isinstance(items[0], bool) else 'int[]'
        name = self._fresh()
        self._lines.append(f'{name} : {listed} = prim::ListConstruct({", ".join(names)})')
        return name

    def _literal(self, kind: str, text: str) -> str:
        if (kind, text) not in self._literals:
            self._literals[kind, text] = name = self._fresh()
            self._lines.append(f'{name} : {kind} = prim::Constant{text}()')
        return self._literals[kind, text]


def _literal_text(item: Any, kind: str) -> tuple[str, str]:
    """Type and attribute text of a literal."""
    if item is None:
        return 'NoneType', ''
    if isinstance(item, bool):
        return 'bool', f'[value={int(item)}]'
    if isinstance(item, int) and 'float' not in kind:
        return 'int', f'[value={item}]'
    if isinstance(item, (int, float)):
        if not math.isfinite(item):
            raise TraceError(f'the number {item} cannot be written as a literal')
        return 'float', f'[value={float(item)!r}]'
    if isinstance(item, str):
        return 'str', f'[value="{item}"]'
    if isinstance(item, torch.device):
        return 'Device', f'[value="{item}"]'
    codes = _codes()
    if item in codes:
        return 'int', f'[value={codes[item]}]'
    raise TraceError(f'a {type(item).__name__} cannot be written as a literal')


def _codes() -> dict[Any, int]:
    """Numbers that TorchScript uses for dtypes, layouts and memory formats."""
    dtypes = (
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.float32,
        torch.float64,
        torch.complex32,
        torch.complex64,
        torch.complex128,
        torch.bool,
        None,
        None,
        None,
        torch.bfloat16,
    )
    codes: dict[Any, int] = {d: i for i, d in enumerate(dtypes) if d is not None}
    codes[torch.strided] = 0
    formats = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)
    return codes | {f: i for i, f in enumerate(formats)}
