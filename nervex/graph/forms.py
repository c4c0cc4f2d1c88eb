"""What a program becomes: Python source, a graph of TorchScript, or kernels of torch's compiler."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from nervex.graph.program import Call, Program, Ref, TraceError

Run = Callable[..., tuple]  # takes the inputs of a program, returns its outputs
_CACHE_LINE = 64  # bytes; what torch allocates begins at one
_FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)


class Source:
    """
    Overview:
        Straight Python source, one line an operator, made a function by ``exec``: a loop over the calls costs 0.3 us
        each, which is half of what acting for one env takes (row 'act, 1 env' of benchmark/train_bench.py).
    Interfaces:
        name, constant, text, line, finish
    """

    def __init__(self, inputs: Sequence[Ref | str]) -> None:
        self._scope: dict[str, Any] = {}
        self._head = [item if isinstance(item, str) else f'x{i}' for i, item in enumerate(inputs)]
        self._names = {id(item): name for item, name in zip(inputs, self._head)}
        self._lines: list[str] = []

    def name(self, ref: Ref) -> str:
        """Name of a value."""
        if ref.tensor is not None:
            return self.constant(ref.tensor)
        return self._names.setdefault(id(ref), f'v{len(self._names)}')

    def constant(self, value: Any) -> str:
        """Name of a global that holds any object."""
        if id(value) not in self._names:
            self._names[id(value)] = f'c{len(self._names)}'
            self._scope[self._names[id(value)]] = value  # which also keeps it, so that its id stays its own
        return self._names[id(value)]

    def text(self, item: Any) -> str:
        """An argument."""
        if isinstance(item, Ref):
            return self.name(item)
        if isinstance(item, (list, tuple)):
            return f'[{", ".join(self.text(x) for x in item)}]'
        return repr(item) if item is None or isinstance(item, (bool, int, str)) else self.constant(item)

    def line(self, text: str) -> None:
        """One more line."""
        self._lines.append(text)

    def require(self, fact: str, otherwise: Any) -> None:
        """Return ``otherwise`` unless the expression is true and finds all its keys."""
        self._lines += ['try:', f'    if not ({fact}): return {otherwise}', f'except KeyError: return {otherwise}']

    def finish(self, result: str, title: str) -> Any:
        """The function, with the text of its result; ``run.source`` is its text."""
        lines = ''.join(f'    {line}\n' for line in [*self._lines, f'return {result}'])
        source = f'def run({", ".join(self._head)}):\n{lines}'
        exec(compile(source, title, 'exec'), self._scope)
        run = self._scope['run']
        run.source = source
        return run


def nested(program: Program, structure: Any, name: Callable[[Ref], str]) -> str:
    """Source text of the results in the containers of ``structure`` (None: a tuple), with the name of each output."""
    names = map(name, program.outputs)

    def text(part: Any) -> str:
        if isinstance(part, dict):
            if not all(isinstance(key, (str, int)) for key in part):
                raise TraceError(f'one of its results has keys that are no text: {list(part)}')
            return f'{{{", ".join(f"{key!r}: {text(x)}" for key, x in part.items())}}}'
        if isinstance(part, (list, tuple)):
            inner = ''.join(f'{text(x)}, ' for x in part)
            return f'[{inner}]' if isinstance(part, list) else f'({inner})'
        return 'None' if part is None else next(names)

    return text(tuple(program.outputs) if structure is None else structure)


def compile_python(program: Program, structure: Any = None) -> Run:
    """
    Overview:
        The program as Python source that calls the operators without autograd.
    Arguments:
        - structure (:obj:`Any`): containers of the outputs; None: a tuple
    """
    source = Source(program.inputs)
    for call in program.calls:
        arguments = [source.text(a) for a in call.args] + [f'{k}={source.text(v)}' for k, v in call.kwargs.items()]
        if call.name == 'getitem':
            text = f'{arguments[0]}[{arguments[1]}]'
        else:
            text = f'{source.constant(_binding(call))}({", ".join(arguments)})'
        source.line(f'{source.name(call.result)} = {text}')
    return source.finish(nested(program, structure, source.name), '<recorded program>')


def _binding(call: Call) -> Callable:
    """Torch's own function where it takes the arguments, which saves the checks of the operator object."""
    args, kwargs = call.filled(lambda ref: ref.example)
    homes = (torch._C._VariableFunctions, torch._C._nn, torch.Tensor)
    for home in () if call.mutates or call.is_random else homes:  # which a trial would disturb
        function = getattr(home, call.name, None)
        try:
            if function is not None and function(*args, **kwargs) is not NotImplemented:
                return function
        except TypeError:  # it takes them in another form; nothing was computed
            continue
    return call.target._op


def compile_script(program: Program) -> Run:
    """
    Overview:
        The program as a graph of TorchScript, whose interpreter runs in C++ without the interpreter lock. Weights are
        inputs, never constants of the graph: constants were seen to go stale. Rests on private functions of torch;
        whatever they refuse becomes a TraceError, and the caller takes another form.
    """
    try:
        program = write_gradient_in_place(program)
        writer = _ScriptWriter(program)
        for call in program.calls:
            writer.call(call)
        graph = writer.finish(program.outputs)
        torch._C._jit_pass_lint(graph)
        function = torch._C._create_function_from_graph('recorded_program', graph)
        run = _without_optimizer(function, writer.given)
        run(*(ref.example for ref in program.inputs))
    except (RuntimeError, AttributeError, TypeError) as e:
        raise TraceError(f'TorchScript refuses the program: {str(e).strip().splitlines()[0]}') from e
    run.source = str(graph)
    return run


def _without_optimizer(function: Any, given: list[Any]) -> Any:
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
            return function(*columns, *given)
        finally:
            optimize(before)

    return run


class _ScriptWriter:
    """Puts calls into a graph; ``given`` is what the graph takes behind the program's inputs."""

    def __init__(self, program: Program) -> None:
        self._graph: Any = torch._C.Graph()
        self._values = {id(ref): self._input('Tensor') for ref in [*program.inputs, *program.constants]}
        self._values.update({id(generator): self._input('Generator') for generator in program.generators})
        self._parts: dict[tuple[int, int], Any] = {}  # results of calls that return several
        self.given = [*(ref.tensor for ref in program.constants), *program.generators]

    def call(self, call: Call) -> None:
        """One operator call as one node, preceded by its literals."""
        if call.name == 'getitem':
            source, index = call.args
            part = self._parts.get((id(source), index))
            if part is None:
                place = [self._values[id(source)], self._graph.insertConstant(index)]
                (part,) = self._node('aten::__getitem__', place, [torch._C.TensorType.get()])
            self._values[id(call.result)] = part
            return
        schema = call.target._schema
        given = dict(zip((a.name for a in schema.arguments), call.args)) | call.kwargs
        inputs = [self._value(given.get(a.name, a.default_value), a.type) for a in schema.arguments]
        results = self._node(schema.name, inputs, [r.type for r in schema.returns])
        if len(results) == 1:
            self._values[id(call.result)] = results[0]
        self._parts.update({(id(call.result), i): result for i, result in enumerate(results) if len(results) > 1})

    def finish(self, outputs: list[Ref]) -> Any:
        """The graph."""
        values = [self._values[id(ref)] for ref in outputs]
        kind = torch._C.TupleType([value.type() for value in values])
        self._graph.registerOutput(self._node('prim::TupleConstruct', values, [kind])[0])
        return self._graph

    def _input(self, kind: str) -> Any:
        value = self._graph.addInput()
        value.setType(torch._C.TensorType.get() if kind == 'Tensor' else torch._C._GeneratorType.get())
        return value

    def _node(self, name: str, inputs: list[Any], kinds: list[Any]) -> list[Any]:
        node = self._graph.create(name, inputs, len(kinds))
        self._graph.insertNode(node)
        for output, kind in zip(node.outputs(), kinds):
            output.setType(kind)
        return list(node.outputs())

    def _value(self, item: Any, kind: Any) -> Any:
        """An argument of a type: a value, or a literal that is written first."""
        if isinstance(item, (Ref, torch.Generator)):
            return self._values[id(item)]
        if isinstance(item, (list, tuple)):
            kind = kind.getElementType() if kind.kind() == 'OptionalType' else kind
            values = [self._value(x, kind.getElementType()) for x in item]
            return self._node('prim::ListConstruct', values, [kind])[0]
        if item in _FORMATS:
            item = _FORMATS.index(item)
        if type(item) is int and 'float' in str(kind):
            item = float(item)
        return self._graph.insertConstant(item)


def compile_inductor(program: Program) -> Run:
    """
    Overview:
        Fused kernels of torch's compiler, with the weights as inputs; seconds to make, with a C++ compiler. Sums are
        taken in another order than in eager mode: float32 results differ by about 1e-7. Programs that draw random
        numbers are refused, because the compiler would draw others.
    """
    if any(call.is_random for call in program.calls):
        raise TraceError('the compiler would draw other random numbers')
    graph, constants = torch.fx.Graph(), program.constants
    nodes = {id(ref): graph.placeholder(f'x{i}') for i, ref in enumerate([*program.inputs, *constants])}
    for call in program.calls:
        nodes[id(call.result)] = graph.call_function(call.target, *call.filled(lambda ref: nodes[id(ref)]))
    graph.output(tuple(nodes[id(ref)] for ref in program.outputs))
    tensors = [ref.tensor for ref in constants]
    examples = [ref.example for ref in program.inputs]
    try:
        from torch._inductor.compile_fx import compile_fx

        with torch.no_grad():
            function: Any = compile_fx(torch.fx.GraphModule({}, graph), [*examples, *tensors])
            function(*examples, *tensors)
    except (RuntimeError, ImportError, AssertionError, TypeError, NotImplementedError, OSError) as e:
        lines = str(e).strip().splitlines()
        raise TraceError(f'compiling failed: {lines[0] if lines else type(e).__name__}') from e

    def run(*columns: torch.Tensor) -> tuple:
        with torch.no_grad():
            return tuple(function(*columns, *tensors))

    return run


def write_gradient_in_place(program: Program) -> Program:
    """
    Overview:
        Where the first output is a ``cat``, replace it by one buffer that lives as long as the program, and let the
        operators that make its pieces write there: 140 instead of 147 us for the update of row 'dqn' in
        benchmark/train_bench.py. The buffer is overwritten by the next run. A piece whose place is not aligned as
        fresh memory is would be rounded differently by some libraries; it is copied.
    """
    made = {id(call.result): call for call in program.calls}
    cat = made.get(id(program.outputs[0]))
    if cat is None or cat.name != 'cat' or len(cat.args) > 1 or cat.result in program.outputs[1:]:
        return program
    buffer = torch.empty_like(cat.result.example)
    taken = {id(ref) for ref in program.outputs}
    writers: dict[int, Call] = {}
    copies, offset = [], 0
    for piece in cat.args[0]:
        source = _before_views(piece, made)
        place = Ref(tensor=buffer[offset : offset + piece.example.numel()].view(source.example.shape))
        offset += piece.example.numel()
        producer = made.get(id(source)) if id(source) not in taken else None
        target = _writing_form(producer) if producer and place.example.data_ptr() % _CACHE_LINE == 0 else None
        taken.add(id(source))
        if producer is None or target is None:
            copies.append(Call(torch.ops.aten.copy_.default, (place, source), {}, Ref()))
        else:
            writers[id(producer)] = Call(target, producer.args, {**producer.kwargs, 'out': place}, producer.result)
    calls = [writers.get(id(call), call) for call in program.calls if call is not cat]
    return Program(program.inputs, calls + copies, [Ref(tensor=buffer), *program.outputs[1:]])


def _before_views(piece: Ref, made: dict[int, Call]) -> Ref:
    """The value that a chain of mere changes of shape starts from."""
    while (call := made.get(id(piece))) is not None and call.name in ('view', '_unsafe_view', 'reshape'):
        before = call.args[0].example
        if not before.is_contiguous() or before.data_ptr() != piece.example.data_ptr():
            break
        piece = call.args[0]
    return piece


def _writing_form(call: Call) -> Any:
    """The operator of a call as it writes its result into memory that it is given; None if there is no such form."""
    if call.mutates or call.is_view or call.is_random:
        return None
    wanted = [(a.name, str(a.type)) for a in call.target._schema.arguments]
    for name in call.target.overloadpacket.overloads():
        target = getattr(call.target.overloadpacket, name)
        *own, last = target._schema.arguments
        if last.is_out and [(a.name, str(a.type)) for a in own] == wanted and len(target._schema.returns) == 1:
            return target
    return None
