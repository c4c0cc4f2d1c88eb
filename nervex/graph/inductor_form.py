"""Back end 'inductor' of the traced update: fused kernels of torch's compiler; seconds to make, with a C++ compiler."""

from collections.abc import Callable, Sequence

import torch

from nervex.graph.trace import Program, Ref, TraceError


def compile_inductor(program: Program, inputs: Sequence[torch.Tensor]) -> Callable[..., tuple]:
    """
    Overview:
        Compile the program with its weights as inputs. Sums are taken in another order than in eager mode: float32
        results differ by about 1e-7. Programs that draw random numbers are refused, because the compiler would draw
        others.
    """
    if any(call.is_random for call in program.calls):
        raise TraceError('the compiler would draw other random numbers')
    constants = program.constants
    module = _as_module(program, constants)
    tensors = [ref.tensor for ref in constants]
    try:
        from torch._inductor.compile_fx import compile_fx

        with torch.no_grad():
            function = compile_fx(module, [*inputs, *tensors])
            function(*inputs, *tensors)
    except (RuntimeError, ImportError, AssertionError, TypeError, NotImplementedError, OSError) as e:
        lines = str(e).strip().splitlines()
        raise TraceError(f'compiling failed: {lines[0] if lines else type(e).__name__}') from e

    def run(*columns: torch.Tensor) -> tuple:
        with torch.no_grad():
            return tuple(function(*columns, *tensors))

    return run


def _as_module(program: Program, constants: list[Ref]) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    nodes = {id(ref): graph.placeholder(f'x{i}') for i, ref in enumerate([*program.inputs, *constants])}

    def node(item: object) -> object:
        return nodes[id(item)] if isinstance(item, Ref) else item

    for call in program.calls:
        args, kwargs = torch.utils._pytree.tree_map(node, (call.args, call.kwargs))
        nodes[id(call.result)] = graph.call_function(call.target, args, kwargs)
    graph.output(tuple(nodes[id(o)] for o in program.outputs))
    return torch.fx.GraphModule({}, graph)
