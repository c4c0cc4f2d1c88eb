"""A program as a graph for TorchScript's interpreter: loss and gradient of an update."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from nervex.graph.program import Call, Program, Ref, TraceError
from nervex.graph.recording import Run

_CACHE_LINE = 64  # bytes; what torch allocates begins at one
_FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)


def gradient_step(
    loss_of: Callable[[dict], tuple[torch.Tensor, dict]], params: list[torch.nn.Parameter]
) -> tuple[Callable[[dict], list[torch.Tensor]], list[int], list[str]]:
    """
    Overview:
        What is recorded of an update: a function of the batch that gives the joined gradient, the loss and its other
        results. The two lists are filled when it runs: which parameters the loss does not reach, the results' names.
    """
    unused: list[int] = []
    names: list[str] = []

    def step(batch: dict) -> list[torch.Tensor]:
        loss, aux = loss_of(batch)
        plain = [k for k, v in aux.items() if not isinstance(v, torch.Tensor)]
        if plain:
            raise TraceError(f"its result '{plain[0]}' is no tensor and would be frozen")
        grads = torch.autograd.grad(loss, params, allow_unused=True)
        unused[:] = [i for i, g in enumerate(grads) if g is None]
        names[:] = aux
        pieces = [torch.zeros_like(p) if g is None else g for g, p in zip(grads, params)]
        return [torch.cat([g.reshape(-1) for g in pieces]), loss.detach(), *[v.detach() for v in aux.values()]]

    return step, unused, names


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
        run: Any = partial(function, *writer.given)
        with torch.jit.optimized_execution(False):  # as later on, see GraphedLoss
            run(*(ref.example for ref in program.inputs))
    except (RuntimeError, AttributeError, TypeError) as e:
        raise TraceError(f'TorchScript refuses the program: {str(e).strip().splitlines()[0]}') from e
    run.source = str(graph)
    return run


class _ScriptWriter:
    """Puts calls into a graph; ``given`` is what the graph takes before the program's inputs."""

    def __init__(self, program: Program) -> None:
        self._graph: Any = torch._C.Graph()
        self._values = {id(ref): self._input('Tensor') for ref in program.constants}
        self._values.update({id(generator): self._input('Generator') for generator in program.generators})
        self._values.update({id(ref): self._input('Tensor') for ref in program.inputs})
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
